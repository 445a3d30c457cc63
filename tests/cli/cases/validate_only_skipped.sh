# Nothing can be predicted.
printf 'id,model,gpu,gpus,tp\nA-1,llama-3.1-8b,h900,8,8\nA-2,llama-3.1-8b,h100,8,3\n' >runs.csv
ndplan validate --runs runs.csv
