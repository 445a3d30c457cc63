# flash3 needs Hopper or Blackwell.
ndplan suggest --model llama-3.1-8b --cluster 8xa100 --attention flash3
