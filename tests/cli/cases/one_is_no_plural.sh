# Nothing is counted as "1 GPUs".
for question in "suggest --cluster h100" "suggest --cluster h100 --objective gpus" "suggest --cluster h100 --lora r=8 --tokens 1B" \
    "estimate --cluster h100 --layout micro_batch=1 --lora r=8" "max --cluster h100 --lora r=8" \
    "sweep --cluster h100 --over seq-len --values 1024 --lora r=8" "why --cluster h100 --layout micro_batch=1" \
    "suggest --cluster 7xh100 --framework pytorch-ddp --global-batch 1" "sweep --cluster h100 --over nic" \
    "suggest --cluster h100 --pin tp=2"; do
    # shellcheck disable=SC2086 # a list of words
    ndplan $question --model llama-3.1-8b >>out 2>&1
done
grep -E "(^|[ (])1 (GPUs|nodes|layouts|sequences|ranks|rules|points|rows|columns|values|of them fit)" out
wc -l <out | awk '{ print ($1 > 100) ? "nothing" : "too few lines" }'
