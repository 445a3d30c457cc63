# An option counts once.
ndplan suggest --model llama-3.1-8b --cluster 2x8xh100 --seq-len 8192 --seq-len 4096
