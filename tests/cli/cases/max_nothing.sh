# Nothing fits at all: the closest layout of each question. Exit 1.
# compare: match
ndplan max --model llama-3.1-70b --cluster h100 --of seq-len
