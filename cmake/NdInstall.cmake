# libndplan (everything but cli), its headers, and a pkg-config file.
include(GNUInstallDirs)
get_property(modules GLOBAL PROPERTY ND_MODULES)
set(objects "")
foreach(module IN LISTS modules)
    list(APPEND objects $<TARGET_OBJECTS:${module}>)
endforeach()
add_library(ndplan_library STATIC ${objects})
set_target_properties(ndplan_library PROPERTIES OUTPUT_NAME ndplan LINKER_LANGUAGE C)
configure_file(${CMAKE_SOURCE_DIR}/cmake/ndplan.pc.in ${CMAKE_BINARY_DIR}/ndplan.pc @ONLY)

install(TARGETS ndplan ndplan_library RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
foreach(folder core models topologies frameworks program cost_model planner reports executor)
    install(DIRECTORY ${CMAKE_SOURCE_DIR}/${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ndplan
            FILES_MATCHING PATTERN "*.h" PATTERN "*_internal.h" EXCLUDE PATTERN "configs" EXCLUDE
            PATTERN "gpus" EXCLUDE PATTERN "clusters" EXCLUDE PATTERN "calibrations" EXCLUDE PATTERN "stacks" EXCLUDE)
endforeach()
install(FILES ${CMAKE_BINARY_DIR}/ndplan.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
