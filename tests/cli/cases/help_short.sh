# -h is --help.
ndplan -h
