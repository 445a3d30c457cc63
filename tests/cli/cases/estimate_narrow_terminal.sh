# COLUMNS makes the report narrower.
# compare: match
COLUMNS=60 ndplan estimate --model llama-3.1-8b --cluster 2x8xh100 --layout dp_shard=16 | awk 'length($0) > 60 && !/^ *(--layout |Layout +)?[^ ]*=[^ ]*$/ { print; wide = 1 } END { print wide ? "too wide" : "fits" }'
