# --program divides the layers as the estimate does; under gpipe a rank begins with the forward passes of all micro-batches.
layout=pp=4,split=balanced,schedule=gpipe,grad_accum=6
program() {
    ndplan estimate --model gemma-2-9b --cluster 4xh100 --seq-len 4096 --layout "$layout" --program -v --rank "$1"
}
ndplan estimate --model gemma-2-9b --cluster 4xh100 --seq-len 4096 --layout "$layout" --json |
    sed -n '/"stage_layers"/,/]/p' | tr -dc '0-9\n' | grep . >predicted
for rank in 0 1 2 3; do
    program "$rank" | sed -nE 's/.* fwd +([0-9]+) .*/\1/p' | sort -u | wc -l | tr -d ' '
done >built
cmp predicted built && echo "the layers of the estimate"
sort -u built | awk 'END { print (NR > 1 ? "stages differ" : "stages are alike") }'
program 2 | sed -nE 's/.* (fwd|bwd) +[0-9]+ +([0-9]+) .*/\1 \2/p' | uniq
