# Errors by model.
# compare: match
ndplan validate --runs "$DATA/runs.csv" --by model
