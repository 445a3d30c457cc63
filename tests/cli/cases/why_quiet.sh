# -q is the answer and what was asked.
# compare: match
ndplan why --model llama-3.1-8b --cluster 2x8xh100 --seq-len 8192 --layout dp_shard=2,tp=8 -q | grep -cE "Assumed|Where|Host"
