# Everything that a user says about the run replaces an assumption.
# compare: match
ndplan estimate --model llama-3.1-8b --cluster 8xh100 --layout dp_shard=8 --tokens 1.5e12 --price 2.5 --mtbf-hours 10000 --checkpoint-interval 90m --storage-gb-per-s 10
