# nd_test(FOLDER NAME LIBS...): builds tests/FOLDER/NAME.c with CUnit and registers it as FOLDER.NAME.
pkg_check_modules(CUNIT REQUIRED IMPORTED_TARGET cunit)
function(nd_test folder name)
    add_executable(${folder}_${name} ${name}.c ${CMAKE_SOURCE_DIR}/tests/nd_test.c)
    target_link_libraries(${folder}_${name} PRIVATE ${ARGN} nd_options PkgConfig::CUNIT)
    target_compile_definitions(${folder}_${name} PRIVATE ND_TEST_DATA="${CMAKE_CURRENT_SOURCE_DIR}/data")
    add_test(NAME ${folder}.${name} COMMAND ${folder}_${name})
    set_tests_properties(${folder}.${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 300)
endfunction()
