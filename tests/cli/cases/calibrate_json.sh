# The keys that programs rely on.
# compare: match
ndplan calibrate --from-runs "$DATA/few_runs.csv" --json --gpu h100 --bare-priors
