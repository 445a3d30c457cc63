# The general help starts with a command line that works.
ndplan --help
