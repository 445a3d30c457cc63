# More passes than are simulated: refused with the reason, and what stood there stays.
echo old >t.json
ndplan estimate --model llama-3.1-8b --cluster 1x8xh100 --seq-len 128 --layout pp=8,grad_accum=1000000 --trace t.json
status=$?
cat t.json
ls
(exit $status)
