# A reader that goes away is one line and exit 2, not a death by signal.
{
    sleep 1 # the reader is gone by now
    ndplan list models --json
    echo "status $?" >&2
} | :
