# Errors after one step of each source has set the scale.
# compare: match
ndplan validate --runs "$DATA/runs.csv" --anchor
