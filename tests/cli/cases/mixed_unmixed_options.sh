# What several kinds of node do not have is refused by name, not left out.
for option in "--objective cost --price 2" "--objective gpus" "--tokens 10B" "--price 2" --pareto; do
    ndplan suggest --model llama-3.1-8b --cluster 2x8xh100+2x8xa100 $option -q
    echo "exit $?"
done
