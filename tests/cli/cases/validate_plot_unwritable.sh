# A picture that cannot be written.
ndplan validate --runs "$DATA/runs.csv" --plot missing/picture.svg
