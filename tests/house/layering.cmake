# cmake -DROOT=<source tree> -P layering.cmake
# Fails on an include that docs/ARCHITECTURE.md does not allow: an edge between folders that is not in the table
# below, a private header from outside its folder, or a third-party header outside its owner.
cmake_minimum_required(VERSION 3.25)

# Folder -> folders whose headers it may include, besides its own.
set(may_core "")
set(may_models core)
set(may_topologies core)
set(may_frameworks core models topologies)
set(may_program core models)
set(may_cost_model core models topologies program)
set(may_planner core models topologies frameworks program cost_model)
set(may_reports core models topologies frameworks program cost_model planner)
set(may_executor core models topologies program)
set(may_cli core models topologies frameworks program cost_model planner reports executor)
set(may_tests core models topologies frameworks program cost_model planner reports executor cli)
set(folders core models topologies frameworks program cost_model planner reports executor cli tests)

# Header pattern -> pattern of the files that may include it.
set(owner_headers
    "^jansson[^/]*\\.h$"                         "^core/json\\.c$"
    "^gsl/gsl_cblas\\.h$"                       "^executor/cpu/blas\\.c$"
    "^gsl/"                                      "^cost_model/fit\\.c$"
    "^(graphviz/.*|cgraph\\.h|gvc\\.h)$"         "^reports/diagram\\.c$"
    "^yaml\\.h$"                                 "^frameworks/yaml\\.c$"
    "^(sanitizer|valgrind)/"                     "^executor/poison_internal\\.h$"
    "^CUnit/"                                    "^tests/"
    "^cblas[^/]*\\.h$"                           "^executor/cpu/"
    "^(hwloc\\.h|hwloc/.*|libxml/.*|expat\\.h)$" "^topologies/"
    "^(cuda|cublas|nccl|cudnn|nvml|nvtx)"        "^executor/cuda/"
    "^mpi\\.h$"                                  "^executor/comm/")

# C17 and POSIX.1-2008, and sys/ioctl.h for the width of a terminal. Any other <header> is third-party and needs a row above.
set(standard
    assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic
    stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype
    aio arpa/inet cpio dirent dlfcn fcntl fmtmsg fnmatch ftw glob grp iconv langinfo libgen monetary mqueue ndbm net/if
    netdb netinet/in netinet/tcp nl_types poll pthread pwd regex sched search semaphore spawn strings stropts sys/ioctl sys/ipc
    sys/mman sys/msg sys/resource sys/select sys/sem sys/shm sys/socket sys/stat sys/statvfs sys/time sys/times
    sys/types sys/uio sys/un sys/utsname sys/wait syslog tar termios trace ulimit unistd utime utmpx wordexp)

set(violations 0)

# Report an include of FILE with the line it stands on.
function(violation file content text reason)
    string(FIND "${content}" "${text}" at)
    string(SUBSTRING "${content}" 0 ${at} before)
    string(REGEX REPLACE "[^\n]" "" newlines "${before}\n")
    string(LENGTH "${newlines}" line)
    string(REGEX MATCH "^\n" leading "${text}")
    if(leading)
        math(EXPR line "${line} + 1")
    endif()
    string(STRIP "${text}" text)
    message(NOTICE "${file}:${line}: ${text}: ${reason}")
    math(EXPR violations "${violations} + 1")
    set(violations ${violations} PARENT_SCOPE)
endfunction()

# Why FILE may not include the third-party or system HEADER; empty when it may.
function(check_system file header reason)
    set(${reason} "" PARENT_SCOPE)
    string(REGEX REPLACE "\\.h$" "" name "${header}")
    if(header MATCHES "\\.h$" AND name IN_LIST standard)
        return()
    endif()
    list(LENGTH owner_headers count)
    math(EXPR last "${count} - 1")
    foreach(i RANGE 0 ${last} 2)
        math(EXPR j "${i} + 1")
        list(GET owner_headers ${i} pattern)
        list(GET owner_headers ${j} owner)
        if(header MATCHES "${pattern}")
            if(NOT file MATCHES "${owner}")
                set(${reason} "only files matching ${owner} may include it" PARENT_SCOPE)
            endif()
            return()
        endif()
    endforeach()
    set(${reason} "a third-party header without an owner; add one in tests/house/layering.cmake" PARENT_SCOPE)
endfunction()

# Why FILE of FOLDER may not include the project HEADER; empty when it may.
function(check_project folder header reason)
    set(${reason} "" PARENT_SCOPE)
    string(FIND "${header}" ".." parent)
    if(NOT parent EQUAL -1 OR NOT header MATCHES "^([a-z_]+)/")
        set(${reason} "write includes from the root, as in \"core/status.h\"" PARENT_SCOPE)
        return()
    endif()
    set(from "${CMAKE_MATCH_1}")
    if(from STREQUAL folder)
        return()
    endif()
    if(NOT from IN_LIST may_${folder})
        set(${reason} "${folder} may not include ${from}" PARENT_SCOPE)
    elseif(header MATCHES "_internal\\.h$" AND NOT folder STREQUAL "tests")
        set(${reason} "a private header of ${from}" PARENT_SCOPE)
    endif()
endfunction()

function(check_file folder file)
    file(READ "${ROOT}/${file}" content)
    string(REGEX MATCHALL "(^|\n)[ \t]*#[ \t]*include[ \t]*(<[^>\n;]*>|\"[^\"\n;]*\"|[A-Za-z_][A-Za-z_0-9]*)" includes
           "${content}")
    foreach(text IN LISTS includes)
        if(text MATCHES "<([^>]*)>$")
            check_system("${file}" "${CMAKE_MATCH_1}" reason)
        elseif(text MATCHES "\"([^\"]*)\"$")
            check_project("${folder}" "${CMAKE_MATCH_1}" reason)
        else()
            set(reason "name the header itself")
        endif()
        if(NOT reason STREQUAL "")
            violation("${file}" "${content}" "${text}" "${reason}")
        endif()
    endforeach()
    set(violations ${violations} PARENT_SCOPE)
endfunction()

file(GLOB top RELATIVE "${ROOT}" "${ROOT}/*")
set(checked 0)
foreach(folder IN LISTS top)
    if(NOT IS_DIRECTORY "${ROOT}/${folder}" OR folder MATCHES "^(\\.|build|out$)")
        continue()
    endif()
    file(GLOB_RECURSE files RELATIVE "${ROOT}" "${ROOT}/${folder}/*.c" "${ROOT}/${folder}/*.h" "${ROOT}/${folder}/*.cu"
         "${ROOT}/${folder}/*.cuh")
    if(files AND NOT folder IN_LIST folders)
        message(NOTICE "${folder}: has sources but no row in tests/house/layering.cmake")
        math(EXPR violations "${violations} + 1")
        continue()
    endif()
    foreach(file IN LISTS files)
        check_file("${folder}" "${file}")
        math(EXPR checked "${checked} + 1")
    endforeach()
endforeach()

if(checked EQUAL 0)
    message(FATAL_ERROR "no sources under ${ROOT}")
endif()
if(violations GREATER 0)
    message(FATAL_ERROR "${violations} forbidden include(s) in ${checked} files")
endif()
message(STATUS "${checked} files follow the include graph")
