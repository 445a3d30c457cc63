# Borderline counts as yes: what makes it sure, and where it stands.
# compare: match
ndplan why --model llama-3.1-8b --cluster 2x8xh100 --seq-len 8192 --layout dp_shard=16 --framework accelerate
