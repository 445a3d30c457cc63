# One id, two rows: the table is refused as validate refuses it.
printf "%s\n" id,model,gpu,gpus,step_time_s A-1,llama-3.1-8b,H100,8,1 A-1,llama-3.1-8b,H100,8,1 >twice.csv
ndplan calibrate --from-runs twice.csv
