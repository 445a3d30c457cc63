# The help of list.
ndplan list -h
