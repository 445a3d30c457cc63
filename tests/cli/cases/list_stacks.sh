# The list of stacks has titles and rows and fits 80 columns.
# compare: match
ndplan list stacks
ndplan list stacks | awk 'length($0) > 80 { print; wide = 1 } END { print wide ? "too wide" : "fits" }'
