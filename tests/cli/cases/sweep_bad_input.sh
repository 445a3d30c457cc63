# Each mistake in one line.
for arguments in "" "--over foo" "--over seq-len --from 4096 --to 2048" "--over seq-len --from 0" "--over seq-len --from abc" \
    "--over gpus --values 3,8" "--over gpus --values 12" "--over gpus --values 8,4" "--over gpus --values ," "--over gpus --values 8,16, " "--over gpus --to 1048576" \
    "--over gpus --from 100" "--over gpus --pin tp=3" "--over nic --values 100Mb/s" "--over nic --values 0" \
    "--over nic --values Gb/s" "--over nvlink-domain --values 3" "--over global-batch --global-batch 4" \
    "--over seq-len --seq-len 4" "--over seq-len --steps 1" "--over seq-len --values 1024 --from 3" \
    "--over seq-len --values 1024,3000 --global-batch-tokens 131072" "--over gpus --plot /nonexistent/x.svg" \
    "--over gpus --from 1 --to 1048576 --steps 65"; do
    # shellcheck disable=SC2086 # a list of words
    ndplan sweep --model llama-3.1-8b --cluster 2x8xh100 $arguments
    echo $?
done
ndplan sweep --model llama-3.1-8b --cluster 8xh100 --over nic
