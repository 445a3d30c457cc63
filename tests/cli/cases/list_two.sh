# One kind at a time.
ndplan list models gpus
