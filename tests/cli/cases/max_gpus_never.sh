# A sequence that nothing divides: more GPUs do not help, and the term that stays is named.
# compare: match
ndplan max --model llama-3.1-8b --cluster 8xh100 --of gpus --seq-len 8000001
