# No such type.
cp "$DATA/../../executor/data/dense.json" dense.json
ndplan run --model dense.json --dtype fp16
