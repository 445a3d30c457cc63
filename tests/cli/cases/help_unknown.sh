# help of a command that does not exist.
ndplan help sugest
