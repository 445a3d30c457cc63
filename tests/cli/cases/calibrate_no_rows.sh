# Columns without rows.
echo "id,model,gpu,gpus,step_time_s" >head.csv
ndplan calibrate --from-runs head.csv
