# Blackwell has a newest kernel too: a stack that takes it on Hopper takes it there, and it can be asked for.
for attention in "" "--attention flash3" "--attention flash1"; do
    # shellcheck disable=SC2086 # a list of words
    ndplan estimate --model llama-3.1-8b --cluster 8xb200 --framework megatron --layout dp_shard=8 --global-batch 64 $attention |
        grep -o 'flash. attention'
done
