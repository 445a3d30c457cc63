# A file without --runs.
ndplan validate runs.csv
