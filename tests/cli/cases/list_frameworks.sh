# The list of frameworks has titles and rows and fits 80 columns.
# compare: match
ndplan list frameworks
ndplan list frameworks | awk 'length($0) > 80 { print; wide = 1 } END { print wide ? "too wide" : "fits" }'
