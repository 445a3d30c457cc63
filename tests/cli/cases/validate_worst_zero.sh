# A list of no rows.
ndplan validate --runs "$DATA/runs.csv" --worst 0
