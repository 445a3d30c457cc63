# A layout that does not divide the model's heads.
cp "$DATA/../../executor/data/dense.json" dense.json
ndplan run --model dense.json --layout tp=3
