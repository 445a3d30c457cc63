# The number of threads changes nothing.
ndplan suggest --model llama-3.1-8b --cluster 4x8xh100 --global-batch 64 --csv --threads 1 >one
ndplan suggest --model llama-3.1-8b --cluster 4x8xh100 --global-batch 64 --csv --threads 7 >seven
cmp one seven && echo the same
