# A topology file with parts and the network between them.
# compare: match
ndplan suggest --model llama-3.1-8b --cluster "$DATA/mixed.json" --global-batch 64 --quiet
