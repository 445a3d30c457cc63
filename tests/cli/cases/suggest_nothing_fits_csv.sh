# Nothing fits in CSV: a header, and the reason on stderr.
# compare: match
ndplan suggest --model llama-3.1-70b --cluster h100 --csv
