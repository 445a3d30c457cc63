# list what?
ndplan list
