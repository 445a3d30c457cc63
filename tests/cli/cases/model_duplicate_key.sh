# A key that is there twice.
cat >config.json <<END
{
  "model_type": "llama",
  "hidden_size": 4096,
  "hidden_size": 8192
}
END
ndplan suggest --model ./config.json --cluster 2x8xh100
