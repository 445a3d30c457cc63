# Two formats at once.
ndplan validate --runs "$DATA/runs.csv" --json --csv
