# A balanced split without a cluster: by FLOPs, as the report says; --verify runs one rank beside it.
# compare: match
cp "$DATA/../../executor/data/deep.json" deep.json
for layout in pp=3,split=balanced pp=3,split=balanced,schedule=gpipe,dp_shard=2; do
    ndplan run --model deep.json --layout "$layout" --steps 3 --verify --lr 0.01 || exit
done
