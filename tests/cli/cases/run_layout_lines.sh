# -v: a line for every step, on stderr; text of one's own as data.
# compare: match
sed s/53/256/ "$DATA/../../executor/data/dense.json" >bytes.json
ndplan run --model bytes.json --data "$DATA/../../executor/data/dense.json" --steps 2 -v --seq-len 32 --seed 7 -q >known
grep -q "32 tokens), adamw" known && grep -q "seed 7" known
