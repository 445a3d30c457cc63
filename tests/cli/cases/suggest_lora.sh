# QLoRA makes 70B fit on one H200.
# compare: match
ndplan suggest --model llama-3.1-70b --cluster h200 --lora r=16,bits=4 --seq-len 2048 --top 1
