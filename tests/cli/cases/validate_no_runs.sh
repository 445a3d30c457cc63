# Columns without runs.
printf 'model,gpu,gpus\n' >runs.csv
ndplan validate --runs runs.csv
