# Quiet: the file and nothing else.
ndplan calibrate --from-runs "$DATA/few_runs.csv" --quiet --output mine.json && [ -s mine.json ]
