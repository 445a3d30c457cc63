# In other types the bounds are wider, and the report says what they are worth.
# compare: match
cp "$DATA/../../executor/data/dense.json" dense.json
ndplan run --model dense.json --layout tp=2 --steps 3 --verify --dtype bf16
