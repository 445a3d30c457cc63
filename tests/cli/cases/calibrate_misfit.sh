# Milliseconds in the column of seconds are noticed, not fitted in silence.
# compare: match
printf "%s\n" id,model,gpu,gpus,dp_shard,zero_stage,framework,seq_len,micro_batch,global_batch,recompute,step_time_s \
    A-1,llama-3.1-8b,H100,8,8,3,Accelerate,8192,1,32,full,5000 A-2,llama-3.1-8b,H100,8,8,3,Accelerate,4096,1,32,full,2.5 >ms.csv
ndplan calibrate --from-runs ms.csv --skip-left-out
