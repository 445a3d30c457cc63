# NaN is no JSON.
sed "s/1e-05/NaN/" "$DATA/llama-8b/config.json" >config.json
ndplan suggest --model ./config.json --cluster 2x8xh100
