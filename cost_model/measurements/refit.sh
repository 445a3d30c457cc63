#!/bin/sh
# refit.sh NDPLAN: fits the shipped constants anew from the shipped runs. The same program and runs give the same file,
# cost_model/fitted/runs.json; rebuild afterwards, since the program carries it. Takes about two minutes: every source is left
# out once, to see how far the model is off on runs that it was not fitted to.
set -eu
: "${1:?usage: refit.sh NDPLAN}"
case $1 in /*) ;; *) set -- "$(pwd)/$1" ;; esac
cd "$(dirname "$0")/../.."
exec "$1" calibrate --from-runs cost_model/measurements/runs.csv --bare-priors --output cost_model/fitted/runs.json
