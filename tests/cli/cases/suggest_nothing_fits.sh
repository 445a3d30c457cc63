# Nothing fits: the closest layout and what it lacks, not an empty table. Exit 1.
# compare: match
ndplan suggest --model llama-3.1-70b --cluster h100
