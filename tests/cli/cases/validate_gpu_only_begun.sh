# An A1000 is no A100.
printf "%s\n" id,model,gpu,gpus,step_time_s A-1,llama-3.1-8b,A1000,8,1 >odd.csv
ndplan validate --runs odd.csv
