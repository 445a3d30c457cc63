# A command of a later version names what comes nearest.
ndplan topology show
