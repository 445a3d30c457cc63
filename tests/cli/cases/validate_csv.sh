# One line for each run; skipped ones last, with the reason.
# compare: match
ndplan validate --runs "$DATA/runs.csv" --csv
