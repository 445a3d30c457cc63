# The help of why.
ndplan help why
