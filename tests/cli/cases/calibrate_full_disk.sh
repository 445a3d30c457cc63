# A disk that is full is no success.
ndplan calibrate --from-runs "$DATA/few_runs.csv" --quiet --output /dev/full
