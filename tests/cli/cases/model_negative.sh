# A negative size.
sed "s/\"hidden_size\": 4096/\"hidden_size\": -4096/" "$DATA/llama-8b/config.json" >config.json
ndplan suggest --model ./config.json --cluster 2x8xh100
