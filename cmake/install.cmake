# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` installs: the libraries and their headers, the command, the standard library's
# sources, documentation, and what find_package(tkc) and pkg-config read.
include(CMakePackageConfigHelpers)

if(TARGET libtkc)
    set_target_properties(libtkc PROPERTIES EXPORT_NAME tkc)
    set_target_properties(tkcrt PROPERTIES EXPORT_NAME rt)
    install(TARGETS libtkc tkcrt EXPORT tkc PUBLIC_HEADER DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
    set(package ${CMAKE_INSTALL_LIBDIR}/cmake/tkc)
    if(TARGET tkc)
        # As find_package(tkc) calls them.
        add_executable(tkc::compiler ALIAS tkc)
        add_library(tkc::rt ALIAS tkcrt)
        set_target_properties(tkc PROPERTIES EXPORT_NAME compiler)
        install(TARGETS tkc EXPORT tkc)
    endif()
    install(EXPORT tkc NAMESPACE tkc:: FILE tkc-targets.cmake DESTINATION ${package})
    configure_package_config_file(cmake/tkc-config.cmake.in tkc-config.cmake
        INSTALL_DESTINATION ${package})
    write_basic_package_version_file(tkc-config-version.cmake COMPATIBILITY SameMinorVersion)
    install(FILES ${PROJECT_BINARY_DIR}/tkc-config.cmake
        ${PROJECT_BINARY_DIR}/tkc-config-version.cmake cmake/tkc_add_kernels.cmake
        DESTINATION ${package})

    file(RELATIVE_PATH TKC_PC_TO_INCLUDE ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig
        ${CMAKE_INSTALL_FULL_INCLUDEDIR})
    foreach(name tkc tkcrt)
        configure_file(cmake/${name}.pc.in ${name}.pc @ONLY)
        install(FILES ${PROJECT_BINARY_DIR}/${name}.pc
            DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
    endforeach()
endif()

# ---- manual pages, completion, syntax: made when all is built
set(made "")
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND)
    set(man ${PROJECT_BINARY_DIR}/man)
    set(pages ${man}/tkc.1 ${man}/tkc.7 ${man}/libtkc.3 ${man}/libtkcrt.3)
    add_custom_command(OUTPUT ${pages}
        COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/scripts/gen-man ${man}
        DEPENDS scripts/gen-man docs/tkc.md docs/language.md runtime/tkc.h runtime/tkc_rt.h
        COMMENT "Making the manual pages" VERBATIM)
    list(APPEND made ${pages})
    set(doc ${PROJECT_BINARY_DIR}/doc)
    file(GLOB doc_sources CONFIGURE_DEPENDS docs/*.md)
    add_custom_command(OUTPUT ${doc}/README.md
        COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/scripts/gen-docs ${doc}
        DEPENDS scripts/gen-docs ${doc_sources}
        COMMENT "Making the pages to install" VERBATIM)
    list(APPEND made ${doc}/README.md)
    foreach(section 1 3 7)
        set(of_section ${pages})
        list(FILTER of_section INCLUDE REGEX "\\.${section}$")
        install(FILES ${of_section} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
    endforeach()
else()
    message(STATUS "Manual pages: none (no Python 3)")
endif()
if(TARGET tkc)
    set(completion ${PROJECT_BINARY_DIR}/completion)
    file(MAKE_DIRECTORY ${completion})
    add_custom_command(OUTPUT ${completion}/tkc ${completion}/_tkc
        COMMAND tkc completion bash > ${completion}/tkc
        COMMAND tkc completion zsh > ${completion}/_tkc
        DEPENDS tkc VERBATIM)
    list(APPEND made ${completion}/tkc ${completion}/_tkc)
    install(FILES ${completion}/tkc DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(FILES ${completion}/_tkc DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
endif()
add_custom_target(tkc_pages ALL DEPENDS ${made})
install(DIRECTORY editors/vim/ DESTINATION ${CMAKE_INSTALL_DATADIR}/vim/vimfiles)

install(DIRECTORY stdlib/ DESTINATION ${CMAKE_INSTALL_DATADIR}/tkc/std
    FILES_MATCHING PATTERN "*.tk")
if(Python3_FOUND)
    install(DIRECTORY ${doc}/ DESTINATION ${CMAKE_INSTALL_DOCDIR})
else()
    install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")
endif()
install(DIRECTORY examples/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
