# A LoRA is estimated but not executed.
cp "$DATA/../../executor/data/dense.json" dense.json
ndplan run --model dense.json --lora r=8
