# No line of an answer is wider than 80 columns, but one that holds only a layout, which is copied.
# compare: match
for layout in tp=3 dp_shard=16,micro_batch=4 dp_shard=2,tp=8; do ndplan why --model llama-3.1-8b --cluster 2x8xh100 --layout $layout -v; done | awk 'length($0) > 80 && !/^ *(--layout |Layout +)?[^ ]*=[^ ]*$/ { print; wide = 1 } END { print wide ? "too wide" : "fits" }'
