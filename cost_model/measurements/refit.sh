#!/bin/sh
# refit.sh NDPLAN: fits the shipped constants anew from the shipped runs. The same program and runs give the same file,
# cost_model/fitted/runs.json; rebuild afterwards, since the program carries it. Takes about two minutes: every source is left
# out once, to see how far the model is off on runs that it was not fitted to.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
exec "${1:?usage: refit.sh NDPLAN}" calibrate --from-runs "$here/runs.csv" --bare-priors --output "$here/../fitted/runs.json"
