# A key that the model needs.
grep -v hidden_size "$DATA/llama-8b/config.json" >config.json
ndplan suggest --model ./config.json --cluster 2x8xh100
