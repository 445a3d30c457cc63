# Help of calibrate.
ndplan calibrate --help
