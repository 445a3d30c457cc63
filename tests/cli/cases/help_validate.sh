# Help of validate.
ndplan validate --help
