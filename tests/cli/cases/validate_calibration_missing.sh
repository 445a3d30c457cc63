# Constants that do not exist.
ndplan validate --runs "$DATA/runs.csv" --calibration missing.json
