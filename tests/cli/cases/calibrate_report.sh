# Constants with their priors and errors, what was left out.
# compare: match
ndplan calibrate --from-runs "$DATA/few_runs.csv" --output mine.json && [ -s mine.json ]
