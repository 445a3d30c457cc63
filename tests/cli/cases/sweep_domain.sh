# A rack of 72 GPUs against nodes of 8.
# compare: match
ndplan sweep --model llama-3.1-70b --cluster 9x8xh100 --over nvlink-domain --values 8,72 --global-batch 144
