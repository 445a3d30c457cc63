# An empty file.
printf '' >runs.csv
ndplan validate --runs runs.csv
