# The layout of the answer stands in one line, however long, and is taken as it is.
layout=$(ndplan suggest --model llama-3.1-70b --cluster 8x8xh100 --seq-len 8192 | sed -n 's/.*--layout //p')
case $layout in *,*,*,*,*,*) ;; *) echo "a short layout tests nothing: $layout" ;; esac
ndplan estimate --model llama-3.1-70b --cluster 8x8xh100 --seq-len 8192 --layout "$layout" -q | sed -n 's/^Layout  *//p' >taken
[ "$(cat taken)" = "$layout" ] && echo "taken as it is"
