# A row with more cells than columns.
printf 'model,gpu,gpus\nllama-3.1-8b,h100,8,9\n' >runs.csv
ndplan validate --runs runs.csv
