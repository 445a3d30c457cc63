# One imported target per third-party library; each has one owner (tests/house/layering.cmake).
find_package(PkgConfig REQUIRED)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson>=2.13) # core/json.c
pkg_check_modules(GSL REQUIRED IMPORTED_TARGET gsl>=2.5)         # cost_model/fit.c
