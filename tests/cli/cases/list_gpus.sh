# The list of gpus has titles and rows and fits 80 columns.
# compare: match
ndplan list gpus
ndplan list gpus | awk 'length($0) > 80 { print; wide = 1 } END { print wide ? "too wide" : "fits" }'
