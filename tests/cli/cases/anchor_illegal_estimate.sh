# A layout that cannot run is answered with the rule, anchor or not.
# compare: match
ndplan estimate --model llama-3.1-8b --cluster 8x8xh100 --layout tp=64 --anchor step_s=4
