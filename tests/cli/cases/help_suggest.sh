# The help of a command starts with an example.
ndplan help suggest
