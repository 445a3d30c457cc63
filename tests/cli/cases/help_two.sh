# help takes one command.
ndplan help suggest list
