# nd_embed(TARGET SYMBOL FILES...)
# Generates a C file that defines `const nd_resource SYMBOL[]` with the text of each file, sorted by name,
# and adds it to TARGET. Rebuilt when a file changes.
function(nd_embed target symbol)
    set(output ${CMAKE_CURRENT_BINARY_DIR}/${symbol}.c)
    string(REPLACE ";" "|" joined "${ARGN}")
    add_custom_command(
        OUTPUT ${output}
        COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DSYMBOL=${symbol} "-DFILES=${joined}"
                -P ${CMAKE_SOURCE_DIR}/cmake/NdEmbedScript.cmake
        DEPENDS ${ARGN} ${CMAKE_SOURCE_DIR}/cmake/NdEmbedScript.cmake
        VERBATIM)
    target_sources(${target} PRIVATE ${output})
endfunction()
