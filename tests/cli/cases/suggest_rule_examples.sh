# The example of a refusal belongs to its rule, also when a framework would refuse the same layout for another reason.
# compare: match
ndplan suggest --model llama-3.1-70b --cluster 8x8xh100 --framework torchtitan --json | tr -d '\n' |
    grep -oE '"reason": "(interleaved-accum|pp-within-layers|tp-divides-heads)",[^}]*"message": "[^"]*"' | tr -s ' ' | sort
