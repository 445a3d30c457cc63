# A command of a later version names what comes nearest.
ndplan max --model llama-3.1-8b
