# Layouts that do not fit are ranked when asked for; the answer stays no.
# compare: match
ndplan suggest --model llama-3.1-70b --cluster 8xh100 --all --top 2
