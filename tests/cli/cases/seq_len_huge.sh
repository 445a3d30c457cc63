# A sequence beyond 64 bits.
ndplan suggest --model llama-3.1-8b --cluster 2x8xh100 --seq-len 99999999999999999999
