# A config.json gives what the built-in model gives.
# compare: match
ndplan suggest --model "$DATA/llama-8b/config.json" --cluster 2x8xh100 -q --top 3 | grep -v '^Model' >file
ndplan suggest --model "$DATA/llama-8b" --cluster 2x8xh100 -q --top 3 | grep -v '^Model' >folder
ndplan suggest --model meta-llama/Llama-3.1-8B --cluster 2x8xh100 -q --top 3 | grep -v '^Model' >name
grep -v '^  ' name >name_lines
grep -v '^  ' file >file_lines
grep -v '^  ' folder >folder_lines
cmp file_lines folder_lines && cmp file_lines name_lines && echo the same
