# gpipe: the step of 1f1b with the activations of all micro-batches; who has it and who has not.
estimate() {
    ndplan estimate --model llama-3.1-8b --cluster 1x8xh100 --seq-len 4096 "$@"
}
figures() {
    estimate --layout "$1" --json >json
    sed -n 's/.*"activations_bytes": \(.*\),/\1/p' json | head -n 1
    sed -n 's/.*"bubble_s": \(.*\),/\1/p' json | head -n 1
}
figures pp=4,dp_shard=2,sharding=zero1,grad_accum=16 >1f1b
figures pp=4,dp_shard=2,sharding=zero1,grad_accum=16,schedule=gpipe >gpipe
paste 1f1b gpipe | awk 'NR == 1 { print ($2 > 3 * $1 ? "much more in flight" : "no more in flight") }
    NR == 2 { print ($2 / $1 < 1.05 && $1 / $2 < 1.05 ? "the same bubble" : "another bubble") }'
estimate --layout tp=8,schedule=gpipe -q
echo "exit $?"
estimate --framework megatron --layout pp=2,tp=4,grad_accum=4,schedule=gpipe -q
echo "exit $?"
estimate --framework torchtitan --layout pp=2,dp_shard=4,grad_accum=8,schedule=gpipe,recompute=full --csv | sed -n 2p | cut -d , -f 1-3
echo "exit $?"
estimate --framework deepspeed --layout pp=2,dp_shard=4,grad_accum=8,schedule=gpipe -q
echo "exit $?"
estimate --stack deepspeed --layout pp=2,dp_shard=4,grad_accum=8,schedule=gpipe -q
echo "exit $?"
estimate --framework nanotron --layout pp=2,dp_shard=4,grad_accum=8,schedule=gpipe -q
echo "exit $?"
