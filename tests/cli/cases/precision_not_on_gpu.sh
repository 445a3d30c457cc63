# A precision that the GPU lacks.
ndplan suggest --model llama-3.1-8b --cluster 8xa100 --precision fp8
