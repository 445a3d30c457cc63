# Every source is predicted with constants fitted on the others.
# compare: match
ndplan validate --runs "$DATA/runs.csv" --leave-one-out
