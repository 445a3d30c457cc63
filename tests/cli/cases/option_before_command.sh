# Options come after the command.
ndplan --model llama-3.1-8b suggest
