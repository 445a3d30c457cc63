# A negative count.
ndplan suggest --model llama-3.1-8b --cluster -2x8xh100
