# 8k means 8,192 to some and 8,000 to others: refused with both.
for arguments in "--seq-len 8K" "--seq-len 8Ki" "--seq-len 1.3k" "--seq-len 8kb" "--global-batch-tokens 4M" "--top 1k"; do
    # shellcheck disable=SC2086 # a list of words
    ndplan suggest --model llama-3.1-8b --cluster 8xh100 $arguments
done
