# No such file.
cp "$DATA/../../executor/data/dense.json" dense.json
ndplan run --model dense.json --data nothing.txt
