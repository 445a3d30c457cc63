# An object where the list of constants should be.
printf '%s\n' '{"schema": "ndplan-fitted-1", "source": "s", "fingerprint": "f", "runs": 1, "reduced_chi2": 1,' \
    '"rcond": 1, "form_log_sd": 0, "hard_form_log_sd": 0,' '"constants": {"a": {}}, "covariance": []}' >broken.json
ndplan estimate --model llama-3.1-8b --cluster 8xh100 --layout dp_shard=8,micro_batch=1 --calibration broken.json
