# --verify: the same steps on one rank, in fp64, give the same model; experts, pipeline and tied embeddings too.
# compare: match
for case in "dense dp_replicate=2,dp_shard=2,cp=2,tp=2" "moe dp_shard=2,tp=2,ep=4" "tied pp=2,dp_shard=2" "mla cp=2,tp=2"; do
    set -- $case
    cp "$DATA/../../executor/data/$1.json" "$1.json"
    ndplan run --model "$1.json" --layout "$2" --steps 3 --verify --masked-frac 0.3 --lr 0.01 --warmup 2 --clip 0.5 || exit
done
