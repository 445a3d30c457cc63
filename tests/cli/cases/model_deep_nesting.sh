# A million brackets.
{ printf "{\"a\": "; head -c 1000000 /dev/zero | tr "\\0" "["; } >config.json
ndplan suggest --model ./config.json --cluster 2x8xh100
