# A model_type that nobody knows.
sed "s/\"llama\"/\"martian\"/" "$DATA/llama-8b/config.json" >config.json
ndplan suggest --model ./config.json --cluster 2x8xh100
