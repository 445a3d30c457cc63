# The version is one line.
ndplan --version
