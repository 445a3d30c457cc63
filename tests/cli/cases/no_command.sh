# Without a command there is nothing to do.
ndplan
