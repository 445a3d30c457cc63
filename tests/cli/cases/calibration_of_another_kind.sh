# The constants of a GPU are no fitted constants.
cp "$DATA/../../../cost_model/calibrations/h100.json" other.json
ndplan estimate --model llama-3.1-8b --cluster 8xh100 --layout dp_shard=8,micro_batch=1 --calibration other.json
