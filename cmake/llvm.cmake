# SPDX-License-Identifier: Apache-2.0
# LLVM 22 for the GPU back end (ptx/llvm_*). Without it everything else builds, and a GPU is refused by name.
#   TKC_LLVM         ON: built where LLVM 22.1 is found
#   TKC_LLVM_STATIC  links the NVPTX parts into libtkc, for machines without LLVM
# Sets TKC_LLVM_LIBS and the interface target tkc_llvm (include path, TKC_HAVE_LLVM).
option(TKC_LLVM "Build the GPU code generator where LLVM 22.1 is found" ON)
option(TKC_LLVM_STATIC "Link LLVM's NVPTX parts statically" OFF)
add_library(tkc_llvm INTERFACE)
set(TKC_LLVM_LIBS "")
if(TKC_LLVM)
    # By its own package: llvm-config and clang on PATH are another version's.
    # The package looks for libraries of parts of LLVM that are not used here (LibEdit, zstd, CURL),
    # and says at this level what it finds.
    set(level "${CMAKE_MESSAGE_LOG_LEVEL}")
    set(CMAKE_MESSAGE_LOG_LEVEL NOTICE)
    find_package(LLVM 22.1 QUIET CONFIG HINTS /usr/lib/llvm-22)
    set(CMAKE_MESSAGE_LOG_LEVEL "${level}")
endif()
if(LLVM_FOUND)
    target_include_directories(tkc_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
    target_compile_definitions(tkc_llvm INTERFACE TKC_HAVE_LLVM)
    if(TKC_LLVM_STATIC)
        enable_language(CXX)
        # LLVM's package names targets of libraries whose development files need not be there.
        foreach(pair zstd::libzstd_shared=libzstd.so.1 ZLIB::ZLIB=libz.so.1 LibXml2::LibXml2=libxml2.so.2)
            string(REPLACE "=" ";" pair ${pair})
            list(GET pair 0 target)
            list(GET pair 1 file)
            find_library(TKC_${file} NAMES ${file})
            if(NOT TARGET ${target} AND TKC_${file})
                add_library(${target} SHARED IMPORTED)
                set_target_properties(${target} PROPERTIES IMPORTED_LOCATION ${TKC_${file}})
            endif()
        endforeach()
        llvm_map_components_to_libnames(TKC_LLVM_LIBS nvptxcodegen nvptxdesc nvptxinfo core passes analysis target)
        list(APPEND TKC_LLVM_LIBS -Wl,--gc-sections -Wl,--exclude-libs,ALL)
    else()
        set(TKC_LLVM_LIBS LLVM)
    endif()
    message(STATUS "GPU code generator: LLVM ${LLVM_PACKAGE_VERSION}")
else()
    message(STATUS "GPU code generator: none (no LLVM 22.1)")
endif()
