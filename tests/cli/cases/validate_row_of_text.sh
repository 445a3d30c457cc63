# A remark between the rows.
printf 'model,gpu,gpus\nllama-3.1-8b,h100,8\nmeasured in May\n' >runs.csv
ndplan validate --runs runs.csv
