# Runs of an H100 say little of an A100: said, not silent.
# compare: match
ndplan calibrate --from-runs "$DATA/few_runs.csv" --gpu h100 --quiet --output mine.json &&
    ndplan estimate --model llama-3.1-8b --cluster 8xa100 --stack torch-fsdp1 --layout dp_shard=8,micro_batch=1,recompute=full --calibration mine.json
