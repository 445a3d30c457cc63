# What the measured layout does not say is stated, and a factor that few machines have.
# compare: match
ndplan suggest --model llama-3.1-8b --cluster 8xh100 --seq-len 8192 --global-batch 32 --framework accelerate --top 1 --anchor step_s=20,dp_shard=8
