# A table that does not exist.
ndplan validate --runs missing.csv
