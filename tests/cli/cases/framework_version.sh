# A version whose rules are not known.
ndplan suggest --model llama-3.1-8b --cluster 2x8xh100 --framework accelerate@0.1
