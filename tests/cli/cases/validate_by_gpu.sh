# Errors by gpu.
# compare: match
ndplan validate --runs "$DATA/runs.csv" --by gpu
