# SPDX-License-Identifier: Apache-2.0
# tkc_folder(NAME): an object library tk_NAME of NAME/*.c, appended to TKC_OBJECTS. A lexer NAME/lex.l
# and a grammar NAME/parse.y are generated into <build>/gen/NAME/ as lex.yy.[ch] and parse.tab.[ch],
# and are included as "NAME/lex.yy.h" and "NAME/parse.tab.h".
function(tkc_folder name)
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${name}/*.c)
    set(generated "")
    file(GLOB grammar CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${name}/parse.y
        ${PROJECT_SOURCE_DIR}/${name}/lex.l)
    list(FILTER sources EXCLUDE REGEX "/rt_[^/]*$") # libtkcrt's
    if(NOT LLVM_FOUND)
        list(FILTER sources EXCLUDE REGEX "/llvm_[^/]*$")
    endif()
    list(LENGTH grammar grammar_files)
    if(grammar_files EQUAL 2)
        tkc_generate_parser(${name} generated)
    endif()
    if(NOT sources AND NOT generated)
        return()
    endif()
    add_library(tk_${name} OBJECT ${sources} ${generated})
    target_include_directories(tk_${name} PRIVATE ${PROJECT_SOURCE_DIR})
    target_include_directories(tk_${name} SYSTEM PRIVATE ${PROJECT_BINARY_DIR}/gen)
    target_link_libraries(tk_${name} PRIVATE tkc_flags tkc_llvm PkgConfig::JANSSON Threads::Threads)
    # Per file rather than per target, so that generated files go without.
    set_property(SOURCE ${sources} APPEND PROPERTY COMPILE_OPTIONS
        $<TARGET_PROPERTY:tkc_warnings,INTERFACE_COMPILE_OPTIONS>)
    set(TKC_OBJECTS ${TKC_OBJECTS} $<TARGET_OBJECTS:tk_${name}> PARENT_SCOPE)
endfunction()

function(tkc_generate_parser name result)
    find_package(BISON 3.8 REQUIRED)
    find_package(FLEX 2.6 REQUIRED)
    set(gen ${PROJECT_BINARY_DIR}/gen/${name})
    file(MAKE_DIRECTORY ${gen})
    BISON_TARGET(${name}_grammar ${PROJECT_SOURCE_DIR}/${name}/parse.y ${gen}/parse.tab.c
        DEFINES_FILE ${gen}/parse.tab.h COMPILE_FLAGS "-Wall -Werror")
    FLEX_TARGET(${name}_lexer ${PROJECT_SOURCE_DIR}/${name}/lex.l ${gen}/lex.yy.c
        DEFINES_FILE ${gen}/lex.yy.h)
    ADD_FLEX_BISON_DEPENDENCY(${name}_lexer ${name}_grammar)
    set(${result} ${BISON_${name}_grammar_OUTPUTS} ${FLEX_${name}_lexer_OUTPUTS} PARENT_SCOPE)
endfunction()
