# CSV: a row for each way that was found.
ndplan suggest --model llama-3.1-8b --cluster 8xh100+8xa100 --csv | cut -d, -f 1-3 | tr -d "\r" | sed "s/stages .*/stages .../"
