# A table without a needed column.
printf 'model,gpu\nllama-3.1-8b,h100\n' >runs.csv
ndplan validate --runs runs.csv
