# Without --from-runs there is nothing to fit to.
ndplan calibrate
