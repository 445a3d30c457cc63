# A bound that is no number.
ndplan validate --runs "$DATA/runs.csv" --max-median-error five
