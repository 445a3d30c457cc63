cmake_minimum_required(VERSION 3.25)
# Script mode: see NdEmbed.cmake. Bytes are written as numbers, so any file content is safe.
string(REPLACE "|" ";" files "${FILES}")
list(SORT files COMPARE NATURAL)
set(arrays "")
set(rows "")
set(index 0)
foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME)
    string(REGEX REPLACE "\\.json$" "" name "${name}")
    file(READ ${file} hex HEX)
    file(SIZE ${file} size)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
    string(REGEX REPLACE "(................................................................................)" "\\1\n"
           bytes "${bytes}")
    string(APPEND arrays "static const char text_${index}[] = {\n${bytes}0x00};\n")
    string(APPEND rows "    {\"${name}\", text_${index}, ${size}},\n")
    math(EXPR index "${index} + 1")
endforeach()
file(WRITE ${OUTPUT} "/* Generated from files of the source tree; do not edit. */\n#include \"core/resource.h\"\n\n"
     "extern const nd_resource ${SYMBOL}[];\n${arrays}\n"
     "const nd_resource ${SYMBOL}[] = {\n${rows}    {0, 0, 0},\n};\n")
