# A full disk is one line and exit 2, not a crash.
[ -w /dev/full ] || exit 77
ndplan list gpus >/dev/full
