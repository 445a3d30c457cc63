# Other data or another schedule than the checkpoint's is refused with both values; a learning rate is changed, and shown.
# compare: match
sed s/53/256/ "$DATA/../../executor/data/dense.json" >bytes.json
for i in 1 2 3 4 5 6 7 8 9; do echo "line $i of a text to train on"; done >text.txt
first="--model bytes.json --global-batch 4 --warmup 2 --seed 3"
ndplan run $first --data text.txt --steps 3 --save saved --json >json || exit
try() {
    ndplan run --steps 2 --resume saved "$@" 2>&1
    echo "exit $?"
}
try $first
echo "one more line" >>text.txt
try $first --data text.txt
sed -i '$d' text.txt
try --model bytes.json --global-batch 8 --warmup 2 --seed 3 --data text.txt
try --model bytes.json --global-batch 4 --warmup 2 --seed 4 --data text.txt
try --model bytes.json --global-batch 4 --seed 3 --data text.txt
try $first --data text.txt --seq-len 32
try $first --data text.txt --layout dp_shard=4 --lr 0.0005 --clip 0 -q
ndplan run $first --data text.txt --steps 2 --resume saved --lr 0.0005 --json | sed -n '/"resumed"/,/]/p'
exit 0
