# A bound needs measured steps.
printf 'id,model,gpu,gpus\nA-1,llama-3.1-8b,h100,8\n' >runs.csv
ndplan validate --runs runs.csv --max-median-error 5
