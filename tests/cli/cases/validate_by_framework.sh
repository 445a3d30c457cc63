# Errors by framework.
# compare: match
ndplan validate --runs "$DATA/runs.csv" --by framework
