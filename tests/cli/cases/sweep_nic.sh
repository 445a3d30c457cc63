# What a slower and a faster network would bring; rates in bits, in bytes and plain.
# compare: match
ndplan sweep --model llama-3.1-70b --cluster 4x8xh100 --over nic --values 100,400Gb/s,200GB/s,12.8Tb/s
