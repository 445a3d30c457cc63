# What cannot be saved is seen before the first of a million steps.
cp "$DATA/../../executor/data/tied.json" tied.json
cp "$DATA/../../executor/data/dense.json" dense.json
ndplan run --model tied.json --steps 1 --save saved --json >json || exit
try() {
    ndplan run --steps 1000000 "$@"
    echo "exit $?"
}
try --model dense.json --save saved
try --model tied.json --save saved/step-0000000001
try --model tied.json --save tied.json
try --model tied.json --save nowhere/saved
try --model tied.json --save other --save-weights tied.json
try --model tied.json --save other --save-weights nowhere/w.safetensors
echo "epoch=3.ckpt" >saved/LATEST
try --model tied.json --save saved
ls
exit 0
