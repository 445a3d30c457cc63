# A batch that the layout cannot share.
cp "$DATA/../../executor/data/dense.json" dense.json
ndplan run --model dense.json --layout dp_replicate=2 --global-batch 3
