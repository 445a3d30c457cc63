# A typo in an option.
ndplan validate --leave-one
