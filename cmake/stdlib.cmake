# SPDX-License-Identifier: Apache-2.0
# tkc_embed_stdlib(): the sources of the standard library as C arrays (runtime/stdlib_embed.h),
# generated again when a stdlib/*.tk is added, removed or edited.
function(tkc_embed_stdlib)
    file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/stdlib/*.tk)
    list(SORT files)
    set(output ${PROJECT_BINARY_DIR}/gen/runtime/stdlib_embed.c)
    set(list_file ${PROJECT_BINARY_DIR}/gen/runtime/stdlib_files.txt)
    list(JOIN files "\n" text)
    file(CONFIGURE OUTPUT ${list_file} CONTENT "${text}" @ONLY)
    add_custom_command(OUTPUT ${output}
        COMMAND ${CMAKE_COMMAND} -DLIST=${list_file} -DOUTPUT=${output}
            -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
        DEPENDS ${files} ${list_file} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
        COMMENT "Embedding the standard library" VERBATIM)
    add_library(tk_stdlib OBJECT ${output})
    target_include_directories(tk_stdlib PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(tk_stdlib PRIVATE tkc_flags tkc_warnings)
    set(TKC_OBJECTS ${TKC_OBJECTS} $<TARGET_OBJECTS:tk_stdlib> PARENT_SCOPE)
endfunction()
