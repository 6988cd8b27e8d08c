# SPDX-License-Identifier: Apache-2.0
# What find_package(rung) and pkg-config find: the library, its headers, the program; and its documents.
# Components are Debian packages (package.cmake): library, program, headers, documents.
install(TARGETS rung EXPORT rung_targets LIBRARY COMPONENT library NAMELINK_COMPONENT headers)
install(TARGETS rung_program COMPONENT program)
install(FILES rung/rung.hpp rung/rung.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rung COMPONENT headers)
foreach(part core harness c)
  install(DIRECTORY rung/${part} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rung COMPONENT headers
    FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/generated/rung/ops/all.hpp ${PROJECT_BINARY_DIR}/generated/rung/ops/all.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rung/ops COMPONENT headers)
# Rungs' sources too: `rung explain` reads what they say of themselves, and prints them.
foreach(operator IN LISTS rung_operators_found)
  install(DIRECTORY rung/ops/${operator} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rung/ops COMPONENT headers
    FILES_MATCHING PATTERN "*.hpp" PATTERN "${operator}.h" PATTERN "*.cuh" PATTERN "cpu/*.cpp" PATTERN "*.cu"
    PATTERN "cpu/shapes/*.cpp" PATTERN "cpu/types/*.cpp" PATTERN "*.cl" PATTERN "*.md"
    PATTERN "peers" EXCLUDE PATTERN "test" EXCLUDE)
endforeach()
# What the templates that take functors (*.cuh) are made of; the sources go into the program that uses them.
foreach(part cpu device simt)
  install(DIRECTORY rung/${part} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rung COMPONENT headers
    FILES_MATCHING PATTERN "*.hpp" PATTERN "cuda_launch.cu" PATTERN "cuda_tensor_map.cu")
endforeach()
# CUDA's headers for programs on the simulated GPU: names without endings among them.
install(DIRECTORY rung/emulate/include rung/emulate/include_older
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rung/emulate COMPONENT headers)
install(FILES rung/emulate/README.md DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rung/emulate COMPONENT headers)
install(EXPORT rung_targets FILE rungTargets.cmake NAMESPACE rung:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/rung
  COMPONENT headers)
# Paths of pkg-config's files are relative to the file, so that the prefix may be moved.
file(RELATIVE_PATH pc_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
include(cmake/static.cmake)
include(cmake/components.cmake)
configure_package_config_file(cmake/rungConfig.cmake.in ${PROJECT_BINARY_DIR}/rungConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/rung PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/rungConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/rungConfig.cmake ${PROJECT_BINARY_DIR}/rungConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/rung COMPONENT headers)
configure_file(cmake/rung.pc.in ${PROJECT_BINARY_DIR}/rung.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/rung.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT headers)

# Documents are as in the source tree, so that their links hold: rung/ beside docs/ is the installed headers
# and rungs, with each operator's README.
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documents)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documents
  FILES_MATCHING PATTERN "*.md" PATTERN "*.ipynb" PATTERN "*.svg")
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documents)
file(RELATIVE_PATH headers_from_documents ${CMAKE_INSTALL_FULL_DOCDIR} ${CMAKE_INSTALL_FULL_INCLUDEDIR}/rung)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/documents)
file(CREATE_LINK ${headers_from_documents} ${PROJECT_BINARY_DIR}/documents/rung SYMBOLIC)
install(FILES ${PROJECT_BINARY_DIR}/documents/rung DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documents)
configure_file(docs/rung.1 ${PROJECT_BINARY_DIR}/rung.1 @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/rung.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)

# What shells read when they complete a command line; the program itself writes it.
function(rung_install_completion shell folder file)
  set(written ${PROJECT_BINARY_DIR}/completion/${file})
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/completion)
  install(CODE "execute_process(COMMAND \"$<TARGET_FILE:rung_program>\" completion ${shell}
    OUTPUT_FILE \"${written}\" COMMAND_ERROR_IS_FATAL ANY)" COMPONENT program)
  install(FILES ${written} DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder} COMPONENT program)
endfunction()
rung_install_completion(bash bash-completion/completions rung)
rung_install_completion(zsh zsh/site-functions _rung)
rung_install_completion(fish fish/vendor_completions.d rung.fish)

# Removes what the last installation wrote. Not where rung is part of another project, which may have its own.
if(PROJECT_IS_TOP_LEVEL)
  add_custom_target(uninstall COMMAND ${CMAKE_COMMAND} -D MANIFEST=${PROJECT_BINARY_DIR}/install_manifest.txt
    -P ${PROJECT_SOURCE_DIR}/cmake/uninstall.cmake VERBATIM)
  include(cmake/package.cmake)
endif()
