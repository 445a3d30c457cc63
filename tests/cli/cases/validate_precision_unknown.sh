# So is an unknown precision.
printf "%s\n" id,model,gpu,gpus,precision,step_time_s A-1,llama-3.1-8b,H100,8,4bit,1 >odd.csv
ndplan validate --runs odd.csv
