# A model with parts that are estimated but have no kernel.
cp "$DATA/../../executor/data/dense.json" dense.json
ndplan run --model gpt-oss-20b
