# Language level, warnings and sanitizers for every target of the project.
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo" FORCE)
endif()

add_library(nd_options INTERFACE)
target_include_directories(nd_options INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_definitions(nd_options INTERFACE _POSIX_C_SOURCE=200809L NDPLAN_VERSION="${PROJECT_VERSION}")
target_compile_options(nd_options INTERFACE
    -Wall -Wextra -Wpedantic -Wconversion -Wno-sign-conversion -Wshadow -Wundef -Wvla
    -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wwrite-strings -Wformat=2
    -Wswitch-enum -Wdouble-promotion
    -fmacro-prefix-map=${CMAKE_SOURCE_DIR}/= # no path of the build machine in messages
    $<$<BOOL:${NDPLAN_WERROR}>:-Werror>)
if(NDPLAN_SANITIZE)
    target_compile_options(nd_options INTERFACE -fsanitize=${NDPLAN_SANITIZE} -fno-omit-frame-pointer
                           -fno-sanitize-recover=all)
    target_link_options(nd_options INTERFACE -fsanitize=${NDPLAN_SANITIZE})
endif()
target_link_libraries(nd_options INTERFACE m)
