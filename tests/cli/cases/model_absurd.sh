# A size beyond all sense.
sed "s/\"num_hidden_layers\": 32/\"num_hidden_layers\": 99999999999999999999/" "$DATA/llama-8b/config.json" >config.json
ndplan suggest --model ./config.json --cluster 2x8xh100
