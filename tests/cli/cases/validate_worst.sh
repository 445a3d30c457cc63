# The largest errors come first; what is not scored stands apart.
# compare: match
ndplan validate --runs "$DATA/runs.csv" --worst 2
