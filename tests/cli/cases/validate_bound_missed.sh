# A missed bound is exit status 1, with the figures.
# compare: match
ndplan validate --runs "$DATA/runs.csv" --max-median-error 0.01
