# A search has no layout of its own that could have been measured.
ndplan suggest --model llama-3.1-8b --cluster 2x8xh100 --seq-len 8192 --global-batch 64 --top 2 --anchor step_s=4.5
