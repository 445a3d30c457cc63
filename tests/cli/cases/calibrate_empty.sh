# An empty file.
: >empty.csv
ndplan calibrate --from-runs empty.csv
