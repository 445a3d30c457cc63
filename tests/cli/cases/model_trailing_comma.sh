# A comma too many.
cat >config.json <<END
{
  "model_type": "llama",
  "hidden_size": 4096,
}
END
ndplan suggest --model ./config.json --cluster 2x8xh100
