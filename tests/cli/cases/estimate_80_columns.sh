# No line of a report is wider than 80 columns, but one that holds only a layout, which is copied.
# compare: match
ndplan estimate --model llama-3.1-8b --cluster 2x8xh100 --layout dp_replicate=2,dp_shard=2,cp=2,tp=2 | awk 'length($0) > 80 && !/^ *(--layout |Layout +)?[^ ]*=[^ ]*$/ { print; wide = 1 } END { print wide ? "too wide" : "fits" }'
