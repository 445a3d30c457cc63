# A word for recompute that means nothing is an error, not "none".
printf "%s\n" id,model,gpu,gpus,recompute,step_time_s A-1,llama-3.1-8b,H100,8,sometimes,1 >odd.csv
ndplan validate --runs odd.csv
