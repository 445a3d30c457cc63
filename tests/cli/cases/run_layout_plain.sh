# A run says what it did first; memory and communication are what the program says, to the byte.
# compare: match
cp "$DATA/../../executor/data/dense.json" dense.json
ndplan run --model dense.json --layout dp_replicate=2,dp_shard=2,cp=2,tp=2 --steps 3
