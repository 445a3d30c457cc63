# One layout over the network rate: the bandwidth at which its communication is hidden.
# compare: match
ndplan sweep --model llama-3.1-8b --cluster 4x8xh100 --over nic --from 400 --to 3200 --layout dp_replicate=32,recompute=full --optimizer adamw-8bit --precision bf16 --lora r=16
