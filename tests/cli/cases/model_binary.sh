# A binary file.
printf "\\377\\376\\000\\001" >config.json
ndplan suggest --model ./config.json --cluster 2x8xh100
