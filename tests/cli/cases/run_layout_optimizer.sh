# Only adamw is executed.
cp "$DATA/../../executor/data/dense.json" dense.json
ndplan run --model dense.json --optimizer sgd
