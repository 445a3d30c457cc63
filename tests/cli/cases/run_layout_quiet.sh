# -q leaves tables and assumptions out; without --layout it is one rank.
# compare: match
cp "$DATA/../../executor/data/gpt2.json" gpt2.json
ndplan run --model gpt2.json --steps 2 --seq-len 16 -q | sed 's/^/|/'
