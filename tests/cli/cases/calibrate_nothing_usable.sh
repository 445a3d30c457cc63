# Grade C and FLAG rows are not fitted to.
printf "%s\n" id,model,gpu,gpus,step_time_s,grade,notes A-1,llama-3.1-8b,H100,8,1,C, A-2,llama-3.1-8b,H100,8,1,A,FLAG >useless.csv
ndplan calibrate --from-runs useless.csv --output mine.json
status=$?
[ ! -e mine.json ] || echo "mine.json was written"
(exit $status)
