# An absurd NVLink rate is refused like every other rate.
echo '{"gpu": {"based_on": "h100", "name": "g", "nvlink_bytes_per_s": 1e-300}, "nodes": 2, "gpus_per_node": 8}' >nv.json
ndplan suggest --model llama-3.2-1b --cluster ./nv.json
