# Days and dollars of every plan, and of the first in words.
# compare: match
COLUMNS=120 ndplan suggest --model llama-3.1-8b --cluster p5.48xlarge:4 --global-batch 256 --tokens 15T --top 3
