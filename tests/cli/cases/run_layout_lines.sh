# -v: a line for every step, on stderr; text of one's own as data.
# compare: match
cp "$DATA/../../executor/data/dense.json" text
sed s/53/256/ text >bytes.json
ndplan run --model bytes.json --data text --steps 2 -v --seq-len 32 --seed 7 -q >known
grep -q "32 tokens), adamw" known && grep -q "seed 7" known
