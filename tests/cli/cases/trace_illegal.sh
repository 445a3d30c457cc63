# A layout that is not legal has no timeline.
# compare: match
ndplan estimate --model llama-3.1-8b --cluster 1x8xh100 --layout tp=8,split=balanced --trace t.json
status=$?
ls
(exit $status)
