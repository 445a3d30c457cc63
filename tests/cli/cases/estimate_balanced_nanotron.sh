# nanotron cuts the stages by a rule of its own.
# compare: match
ndplan estimate --model llama-3.1-8b --cluster 1x8xh100 --framework nanotron --layout pp=8,grad_accum=16,split=balanced
