# A folder that does not exist.
ndplan calibrate --from-runs "$DATA/few_runs.csv" --output missing/mine.json
