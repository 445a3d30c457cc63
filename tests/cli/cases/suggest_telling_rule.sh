# No layout is legal: the rule that another batch lifts comes first, not the most frequent one.
ndplan suggest --model llama-3.1-8b --cluster 7xh100 --framework pytorch-ddp --global-batch 8 |
    awk '/^No layout/ || shown { print } { shown = /^No layout/ || /refused by/ } ' | sed 's/  */ /g'
