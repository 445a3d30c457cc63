# An empty command.
ndplan ''
