# No line of the report is longer than 80 columns.
ndplan validate --runs "$DATA/runs.csv" --rows --anchor --by framework >out || exit
awk 'length($0) > 80' out
