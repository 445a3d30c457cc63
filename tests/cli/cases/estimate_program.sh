# --program: what a rank executes. The whole list has no lines left out; wrong ranks and what no program exists for are
# refused.
cp "$DATA/../../executor/data/dense.json" dense.json
ndplan estimate --model dense.json --cluster 8xh100 --layout pp=2,dp_shard=2,tp=2 --seq-len 64 --program --rank 5 | sed -n 1,30p
ndplan estimate --model dense.json --cluster 4xh100 --layout dp_shard=2,tp=2 --seq-len 64 --program -v >all
grep -c "more: -v" all
awk '/^Instructions/ { on = 1 } on && $1 ~ /^[0-9]+$/ { n++ } END { print (n > 500 ? "all of them" : n) }' all
ndplan estimate --model dense.json --cluster 4xh100 --layout dp_shard=4 --seq-len 64 --program --rank 4
echo "exit $?"
ndplan estimate --model dense.json --cluster 4xh100 --layout dp_shard=4,offload=optimizer --seq-len 64 --program
echo "exit $?"
ndplan estimate --model gpt-oss-20b --cluster 8xh100 --layout dp_shard=8 --program
echo "exit $?"
