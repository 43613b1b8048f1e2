# SPDX-License-Identifier: Apache-2.0
# Language standard, code generation and warnings, as two interface targets:
#   tkc_flags     everything that we compile, generated or written
#   tkc_warnings  what we write
if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# The executor relies on the vectoriser. Assertions stay: they are cheap and tests run this build.
set(CMAKE_C_FLAGS_RELEASE "-O3 -g")

add_library(tkc_flags INTERFACE)
target_compile_definitions(tkc_flags INTERFACE _POSIX_C_SOURCE=200809L)
# Numerics are part of the language: no contraction. The other two change no value; without them
# square roots keep a call for errno, and selects on floats are not vectorised.
target_compile_options(tkc_flags INTERFACE -ffp-contract=off -fno-math-errno -fno-trapping-math)

# What the disk cache tells one build from another by.
target_link_options(tkc_flags INTERFACE -Wl,--build-id=sha1)

# The tests are many programs with one large library in each.
include(CheckLinkerFlag)
check_linker_flag(C "-fuse-ld=lld" TKC_HAS_LLD)
if(TKC_HAS_LLD)
    add_link_options(-fuse-ld=lld)
endif()

add_library(tkc_warnings INTERFACE)
target_compile_options(tkc_warnings INTERFACE -Wall -Wextra -Wshadow -Wconversion -Werror)
if(CMAKE_C_COMPILER_ID MATCHES Clang)
    # A loop marked for vectorising that is not (always so with sanitizers) is slow, not wrong.
    target_compile_options(tkc_warnings INTERFACE -Wno-pass-failed)
endif()

if(TKC_SANITIZE)
    target_compile_options(tkc_flags INTERFACE -fsanitize=${TKC_SANITIZE}
        -fno-sanitize-recover=all -fno-omit-frame-pointer)
    # Linked code takes the sanitizers' run time without libFuzzer's main, which fuzz/ adds.
    string(REPLACE "fuzzer-no-link," "" TKC_SANITIZE_LINK "${TKC_SANITIZE}")
    target_link_options(tkc_flags INTERFACE -fsanitize=${TKC_SANITIZE_LINK})
endif()
