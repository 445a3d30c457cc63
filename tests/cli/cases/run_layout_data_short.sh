# A file shorter than a sequence and its last label.
sed s/53/256/ "$DATA/../../executor/data/dense.json" >bytes.json
printf "too short" >text.txt
ndplan run --model bytes.json --data text.txt
