# A sweep from one node to several says which network it assumes; a cluster that has one needs no such line.
ndplan sweep --model llama-3.1-8b --cluster 8xh100 --over gpus --values 8,16 | grep "between nodes"
ndplan sweep --model llama-3.1-8b --cluster p5.48xlarge --over gpus --values 8,16 | grep "between nodes"
ndplan sweep --model llama-3.1-8b --cluster 2x8xh100 --over gpus --values 8,16 | grep "between nodes"
ndplan max --model llama-3.1-70b --cluster 8xh100 --of gpus | grep -c "between nodes: 8 x 400 Gb/s ib-ndr per node, assumed"
