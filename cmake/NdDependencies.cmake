# One imported target per third-party library; each has one owner (tests/house/layering.cmake).
find_package(PkgConfig REQUIRED)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED) # core/pool.c
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson>=2.13) # core/json.c
pkg_check_modules(GSL REQUIRED IMPORTED_TARGET gsl>=2.5)         # cost_model/fit.c

# Matrix products of executor/cpu: OpenBLAS, or the reference library that GSL brings (slow, and always there).
add_library(nd_cblas INTERFACE)
pkg_check_modules(OPENBLAS QUIET IMPORTED_TARGET openblas)
find_path(ND_CBLAS_INCLUDE cblas.h PATH_SUFFIXES openblas)
if(OPENBLAS_FOUND AND ND_CBLAS_INCLUDE)
    # GSL brings a library with the same symbols: whichever is linked first would be used by both
    get_target_property(gsl_libraries PkgConfig::GSL INTERFACE_LINK_LIBRARIES)
    list(FILTER gsl_libraries EXCLUDE REGEX "gslcblas")
    set_target_properties(PkgConfig::GSL PROPERTIES
                          INTERFACE_LINK_LIBRARIES "${gsl_libraries};PkgConfig::OPENBLAS")
    target_link_libraries(nd_cblas INTERFACE PkgConfig::OPENBLAS)
    target_include_directories(nd_cblas INTERFACE ${ND_CBLAS_INCLUDE})
else()
    message(STATUS "OpenBLAS not found: executor/cpu uses GSL's matrix products, which are slow")
    target_compile_definitions(nd_cblas INTERFACE ND_GSL_CBLAS)
    target_link_libraries(nd_cblas INTERFACE PkgConfig::GSL)
endif()
