# No such backend.
cp "$DATA/../../executor/data/dense.json" dense.json
ndplan run --model dense.json --backend tpu
