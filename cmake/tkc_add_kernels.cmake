# SPDX-License-Identifier: Apache-2.0
# tkc_add_kernels(TARGET FILE.tk... [ARCH sm_80 sm_90a ...] [INSTANCES NAME=KERNEL,P=VALUE ...]
#                 [KERNEL NAME] [DEFINES P=VALUE ...] [OPTIONS OPTION ...])
#
# Compiles tile kernels at build time into a target: for each k.tk an object file that is linked in,
# and k.h with a function for each kernel, which the target's sources include. Built again when k.tk
# or what it imports changes. ARCH: the GPUs to compile for (sm_80 where none is named); the others
# are options of the command, as docs/tkc.md has them, for each of the files.
function(tkc_add_kernels target)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "KERNEL" "ARCH;INSTANCES;DEFINES;OPTIONS")
    if(NOT TARGET ${target})
        message(FATAL_ERROR "tkc_add_kernels: '${target}' is no target")
    endif()
    if(NOT arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "tkc_add_kernels(${target}): no file is given")
    endif()
    set(flags ${arg_OPTIONS})
    if(arg_ARCH)
        list(JOIN arg_ARCH "," arch)
        list(APPEND flags --arch ${arch})
    endif()
    if(arg_KERNEL)
        list(APPEND flags --kernel ${arg_KERNEL})
    endif()
    foreach(define IN LISTS arg_DEFINES)
        list(APPEND flags -D ${define})
    endforeach()
    foreach(instance IN LISTS arg_INSTANCES)
        list(APPEND flags --instance ${instance})
    endforeach()
    set(folder ${CMAKE_CURRENT_BINARY_DIR}/tkc_kernels/${target})
    file(MAKE_DIRECTORY ${folder})
    foreach(file IN LISTS arg_UNPARSED_ARGUMENTS)
        get_filename_component(source ${file} ABSOLUTE BASE_DIR ${CMAKE_CURRENT_SOURCE_DIR})
        get_filename_component(name ${file} NAME_WE)
        set(object ${folder}/${name}.o)
        if(${object} IN_LIST outputs)
            message(FATAL_ERROR "tkc_add_kernels(${target}): two files are named ${name}.tk")
        endif()
        list(APPEND outputs ${object})
        add_custom_command(OUTPUT ${object} ${folder}/${name}.h
            COMMAND tkc::compiler ${source} -o ${object} --header ${folder}/${name}.h
                --depfile ${object}.d ${flags}
            DEPENDS ${source} tkc::compiler
            DEPFILE ${object}.d
            COMMENT "Compiling kernels of ${file}" VERBATIM)
        set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
        target_sources(${target} PRIVATE ${object} ${folder}/${name}.h)
    endforeach()
    target_include_directories(${target} PRIVATE ${folder})
    target_link_libraries(${target} PRIVATE tkc::rt)
endfunction()
