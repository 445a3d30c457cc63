# A checkpoint of one split goes on in another: the losses are those of a run that was never stopped.
cp "$DATA/../../executor/data/deep.json" deep.json
steps() {
    ndplan run --model deep.json --dtype fp64 --global-batch 6 --json "$@" | grep '"loss":' | tr -d ' ,' | cut -c 1-18 || exit
}
steps --layout pp=3 --steps 6 | tail -n 3 >whole
steps --layout pp=3,split=balanced --steps 3 --save saved >/dev/null
for layout in pp=3 pp=2,vpp=3,split=balanced pp=3,vpp=2,split=balanced dp_shard=2,tp=2 pp=5,split=balanced,schedule=gpipe; do
    steps --layout "$layout" --steps 3 --resume saved | cmp - whole && echo "$layout: the same losses"
done
