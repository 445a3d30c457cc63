# A closed standard output is an error, not a success.
ndplan list gpus >&-
