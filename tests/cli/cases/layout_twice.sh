# A key that is there twice.
ndplan estimate --model llama-3.1-8b --cluster 2x8xh100 --layout tp=2,tp=4
