# More memory than the machine has is refused before any of it is reserved.
# compare: match
ndplan run --model llama-3.1-405b --dtype fp64
