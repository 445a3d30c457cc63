# Held-out errors fit constants of their own.
ndplan validate --runs "$DATA/runs.csv" --leave-one-out --calibration x.json
