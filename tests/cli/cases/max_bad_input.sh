# Each mistake in one line.
for arguments in "--of foo" "--of seq-len --seq-len 10" "--of micro-batch --pin micro_batch=2" "--pin tp=3" \
    "--layout tp=8 --pin tp=8" "--layout tp=4" "--csv"; do
    # shellcheck disable=SC2086 # a list of words
    ndplan max --model llama-3.1-8b --cluster 8xh100 $arguments
    echo $?
done
ndplan max --cluster 8xh100
