# -q leaves the explanations out.
# compare: match
ndplan suggest --model llama-3.1-8b --cluster 2x8xh100 -q | grep -cE "Assumed|before|Searched"
