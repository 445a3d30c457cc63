# The list of models has titles and rows and fits 80 columns.
# compare: match
ndplan list models
ndplan list models | awk 'length($0) > 80 { print; wide = 1 } END { print wide ? "too wide" : "fits" }'
