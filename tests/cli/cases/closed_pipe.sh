# A reader that goes away is one line and exit 2, not a death by signal.
# compare: match
{ ndplan list models --json; echo "status $?" >&2; } | :
