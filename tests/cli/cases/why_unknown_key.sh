# Text that is no layout is a usage error.
ndplan why --model llama-3.1-8b --cluster 8xh100 --layout dp_shardd=8
