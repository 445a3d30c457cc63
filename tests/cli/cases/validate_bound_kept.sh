# A bound that holds.
# compare: match
ndplan validate --runs "$DATA/runs.csv" --max-median-error 500
