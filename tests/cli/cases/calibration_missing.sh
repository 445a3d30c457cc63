# A calibration file that does not exist.
ndplan suggest --model llama-3.1-8b --cluster 2x8xh100 --calibration nowhere.json
