# No row can be predicted: the reason of the first.
printf "%s\n" id,model,gpu,gpus,dp_shard,step_time_s A-1,llama-3.1-8b,H100,8,4,1 >odd.csv
ndplan calibrate --from-runs odd.csv
