# Leaving one source out needs two.
printf 'id,model,gpu,gpus,step_time_s\nA-1,llama-3.1-8b,h100,8,3\n' >runs.csv
ndplan validate --runs runs.csv --leave-one-out
