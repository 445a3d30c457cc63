# Bytes are tokens: a vocabulary of 53 is too small.
cp "$DATA/../../executor/data/dense.json" dense.json
ndplan run --model dense.json --data dense.json
