# An option of another command.
ndplan suggest --model llama-3.1-8b --cluster 2x8xh100 --layout tp=8
