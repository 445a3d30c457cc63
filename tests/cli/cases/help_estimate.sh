# COMMAND --help is the same as help COMMAND.
ndplan estimate --help
