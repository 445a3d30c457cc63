# Offload moves the need to the host: its figure is that of the change, not only that of the layout asked for.
# compare: match
ndplan why --model llama-3.1-8b --cluster h100 --layout micro_batch=1
