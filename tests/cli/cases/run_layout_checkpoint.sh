# --save and --resume: six steps at once and three, then three more in the same layout, give the same losses; another
# layout goes on too; all weights in one file; what is refused.
cp "$DATA/../../executor/data/tied.json" tied.json
steps() {
    ndplan run --model tied.json --dtype fp64 --global-batch 8 --json "$@" | grep '"loss":' | tr -d ' ,' || exit
}
steps --layout dp_shard=2,tp=2 --steps 6 --save whole >at_once
steps --layout dp_shard=2,tp=2 --steps 3 --save saved >parts
steps --layout dp_shard=2,tp=2 --steps 3 --resume saved --save again --save-weights tied.safetensors >>parts
cmp at_once parts && echo "the same bits"
steps --layout pp=2,cp=2 --steps 3 --resume saved | cut -c 1-18 >other
tail -n 3 at_once | cut -c 1-18 | cmp - other && echo "the same numbers in another layout"
ls saved again tied.safetensors
ndplan run --model tied.json --resume nowhere
echo "exit $?"
ndplan run --model tied.json --resume saved --verify
echo "exit $?"
ndplan run --model tied.json --save-weights w.safetensors
echo "exit $?"
ndplan run --model tied.json --resume saved
echo "exit $?"
cp "$DATA/../../executor/data/dense.json" dense.json
ndplan run --model dense.json --dtype fp64 --resume saved
echo "exit $?"
