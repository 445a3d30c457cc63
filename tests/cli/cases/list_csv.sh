# CSV has the keys of the JSON.
# compare: match
ndplan list gpus --csv
