# A GPU without bf16 trains in fp16, and a borrowed calibration is named.
# compare: match
ndplan estimate --model gpt2 --cluster 8xv100-32gb --layout dp_replicate=8
