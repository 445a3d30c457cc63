# The keys that programs rely on.
# compare: match
ndplan validate --runs "$DATA/runs.csv" --json --by gpu --anchor
