# A file that may not be read (root reads everything, so it is a broken link).
ln -s nowhere config.json
ndplan suggest --model ./config.json --cluster 2x8xh100
