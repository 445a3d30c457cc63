# Every run with what was assumed for it.
# compare: match
ndplan validate --runs "$DATA/runs.csv" --rows
