# A negative sequence.
ndplan suggest --model llama-3.1-8b --cluster 2x8xh100 --seq-len -8192
