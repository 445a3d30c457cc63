# A typo in a column name is answered with the nearest one.
printf 'model,gpu,gpus,seqlen\nllama-3.1-8b,h100,8,4096\n' >runs.csv
ndplan validate --runs runs.csv
