# The help of run.
ndplan run --help
