# A number beyond all bounds.
printf 'model,gpu,gpus,step_time_s\nllama-3.1-8b,h100,8,1e300\n' >runs.csv
ndplan validate --runs runs.csv
