# One imported target per third-party library; each has one owner (tests/house/layering.cmake).
find_package(PkgConfig REQUIRED)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED) # core/pool.c
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson>=2.13) # core/json.c
pkg_check_modules(GSL REQUIRED IMPORTED_TARGET gsl>=2.5)         # cost_model/fit.c
