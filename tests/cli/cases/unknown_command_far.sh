# A name that is near to nothing.
ndplan xyzzyplugh
