# Errors by source, dense and hard apart, then over all; what is not scored and not predicted is counted.
# compare: match
ndplan validate --runs "$DATA/runs.csv"
