# What fits may not load: the answer itself says so.
# compare: match
ndplan why --model llama-3.1-70b --cluster a2-highgpu-8g:16 --framework accelerate --layout dp_shard=128,recompute=full -q | sed '/^Model/,$d' | tr -s '\n ' ' '
