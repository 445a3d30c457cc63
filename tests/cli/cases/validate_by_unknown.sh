# A key that rows cannot be grouped by.
ndplan validate --runs "$DATA/runs.csv" --by colour
