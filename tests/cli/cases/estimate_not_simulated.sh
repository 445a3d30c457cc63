# More passes than are simulated: the closed form stands alone, and the report says why.
# compare: match
ndplan estimate --model llama-3.1-8b --cluster 1x8xh100 --seq-len 128 --layout pp=8,grad_accum=1000000
ndplan estimate --model llama-3.1-8b --cluster 1x8xh100 --seq-len 128 --layout pp=8,grad_accum=1000000 --json
