# A rank that fails is exit 3, with rank, instruction and layer.
# compare: match
cp "$DATA/../../executor/data/dense.json" dense.json
ndplan run --model dense.json --layout tp=2 --lr 1e6 --steps 100 --check-nan -q
