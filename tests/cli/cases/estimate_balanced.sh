# A pipeline balanced by what its layers, embedding and head cost; the report says what each stage holds.
# compare: match
ndplan estimate --model gemma-2-2b --cluster 1x8xh100 --seq-len 4096 --layout pp=8,grad_accum=16,split=balanced
