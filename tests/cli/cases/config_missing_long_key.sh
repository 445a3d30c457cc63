# A missing key gets a hint only from a key that is nearly the same.
printf '{"model_type": "llama", "_name_or_path": "x", "hidden_size": 64, "num_attention_heads": 4}' >config.json
ndplan suggest --model config.json --cluster h100
