# A kind that does not exist.
ndplan list model
