# A FIFO must not hang the program.
mkfifo config.json
ndplan suggest --model ./config.json --cluster 2x8xh100
