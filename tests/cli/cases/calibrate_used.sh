# The file is what --calibration takes.
# compare: match
ndplan calibrate --from-runs "$DATA/few_runs.csv" --quiet --output mine.json &&
    ndplan estimate --model llama-3.1-8b --cluster 8xh100 --layout dp_shard=8,micro_batch=1,recompute=full --calibration mine.json &&
    ndplan validate --runs "$DATA/few_runs.csv" --calibration mine.json
