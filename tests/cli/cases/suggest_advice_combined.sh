# The layout of least memory recomputes nothing, since its peak is the optimizer's; QLoRA fits only with recompute=full.
# compare: match
ndplan suggest --model llama-3.1-70b --cluster h100 --framework accelerate --seq-len 8192 --global-batch 16 -q
