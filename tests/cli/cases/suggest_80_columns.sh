# No line is wider than 80 columns, whatever the axes, but one that holds only a layout, which is copied.
# compare: match
for question in "--model llama-3.1-8b --cluster 2x8xh100" "--model mixtral-8x7b --cluster 4x8xh100 --seq-len 32768" \
    "--model llama-3.1-70b --cluster 8xh100" "--model llama-3.1-8b --cluster 2x8xh100 --framework accelerate -v"; do
    ndplan suggest $question | awk 'length($0) > 80 && !/^ *(--layout |Layout +)?[^ ]*=[^ ]*$/ { print; wide = 1 } END { print wide ? "too wide" : "fits" }'
done
