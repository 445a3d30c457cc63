# Words where a number belongs.
printf 'model,gpu,gpus\nllama-3.1-8b,h100,eight\n' >runs.csv
ndplan validate --runs runs.csv
