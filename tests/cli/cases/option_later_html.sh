# --html is not in this version.
ndplan suggest --model llama-3.1-8b --cluster 2x8xh100 --html=report.html
