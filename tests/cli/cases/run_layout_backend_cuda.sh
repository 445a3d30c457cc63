# A backend that is not built in.
cp "$DATA/../../executor/data/dense.json" dense.json
ndplan run --model dense.json --backend cuda
