# Without --runs: the published runs that the program carries.
# compare: match
ndplan validate
