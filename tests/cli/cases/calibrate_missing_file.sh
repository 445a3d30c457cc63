# A table that does not exist.
ndplan calibrate --from-runs missing.csv
