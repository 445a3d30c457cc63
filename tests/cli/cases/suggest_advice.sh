# Advice for a layout that does not fit is tried, not recited: the peak is in the optimizer phase, so a shorter sequence
# cannot help and is not offered.
ndplan suggest --model llama-3.1-70b --cluster 2x6xh100 --framework axolotl --seq-len 8192 -q | grep -A 9 '^  What makes it' | grep -oE '^ +(--[a-z-]+ [a-z0-9=,-]+|--pin offload=[a-z]+)|--seq-len'
