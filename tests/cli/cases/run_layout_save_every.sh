# --save-every saves at multiples of N, also after --resume; --keep leaves the newest.
cp "$DATA/../../executor/data/tied.json" tied.json
train() {
    ndplan run --model tied.json --layout tp=2 --save saved --json "$@" >json || exit
    ls saved
}
train --steps 5 --save-every 2
train --steps 4 --save-every 2 --keep 3 --resume saved
train --steps 1 --keep 1 --resume saved
ndplan run --model tied.json --save-every 2
echo "exit $?"
ndplan run --model tied.json --keep 2
echo "exit $?"
ndplan run --model tied.json --save saved --save-every 0
echo "exit $?"
exit 0
