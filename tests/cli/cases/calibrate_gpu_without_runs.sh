# A GPU that no run is of.
ndplan calibrate --from-runs "$DATA/few_runs.csv" --gpu v100
