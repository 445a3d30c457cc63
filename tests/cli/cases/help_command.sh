# `help` without a command is the general help.
ndplan help
