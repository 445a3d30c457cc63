# No part of the cluster is enough.
# compare: match
ndplan suggest --model llama-3.1-405b --cluster 8xh100 --objective gpus
