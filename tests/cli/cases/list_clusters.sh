# The list of clusters has titles and rows and fits 80 columns.
# compare: match
ndplan list clusters
ndplan list clusters | awk 'length($0) > 80 { print; wide = 1 } END { print wide ? "too wide" : "fits" }'
