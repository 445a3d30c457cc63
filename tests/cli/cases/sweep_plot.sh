# The picture beside the table.
# compare: match
ndplan sweep --model llama-3.1-8b --cluster 2x8xh100 --over gpus --from 4 --to 64 --plot gpus.svg -q
status=$?
grep -o "perfect scaling" gpus.svg | sed -n 1p
grep -o "from 4: [a-z0-9_ ]*" gpus.svg | sed -n 1p
head -c 4 gpus.svg
exit $status
