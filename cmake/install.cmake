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
        add_executable(tkc::compiler ALIAS tkc) # as find_package(tkc) calls it
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

install(DIRECTORY stdlib/ DESTINATION ${CMAKE_INSTALL_DATADIR}/tkc/std
    FILES_MATCHING PATTERN "*.tk")
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
