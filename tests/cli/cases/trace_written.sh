# A timeline with two stages, three kinds of passes, transfers and the layout that it is of.
# compare: match
ndplan estimate --model llama-3.1-8b --cluster 1x8xh100 --seq-len 2048 --quiet \
    --layout pp=2,dp_replicate=4,grad_accum=4,schedule=zero_bubble --trace t.json >/dev/null
status=$?
ls
tr -d '\n' <t.json | head -c 60
echo
for name in forward backward 'weight gradient' 'send activations' 'send gradients' 'reduce gradients' optimizer; do
    echo "$name: $(grep -c "\"ph\":\"X\",\"name\":\"$name" t.json)"
done
grep '"layout"' t.json
(exit $status)
