# A typo suggests the nearest command.
ndplan sugest
