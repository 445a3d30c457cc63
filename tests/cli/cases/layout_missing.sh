# estimate needs a layout.
ndplan estimate --model llama-3.1-8b --cluster 2x8xh100
