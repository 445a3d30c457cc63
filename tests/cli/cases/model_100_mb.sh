# A file of 100 MB is refused before it is read.
head -c 104857600 /dev/zero | tr "\\0" " " >config.json
ndplan suggest --model ./config.json --cluster 2x8xh100
