# Ctrl-C ends a run after the step that runs, says what is known, and 130; one rank is not compared with any more.
# compare: match
cp "$DATA/../../executor/data/dense.json" dense.json
timeout --foreground --preserve-status -s INT 1 "$ndplan_path" run --model dense.json --layout dp_shard=2,tp=2 --steps 1000000 --verify
