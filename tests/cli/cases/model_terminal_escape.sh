# What a name holds never reaches the terminal as a command.
ndplan suggest --model "$(printf "x\\033[31mred")" --cluster 2x8xh100
