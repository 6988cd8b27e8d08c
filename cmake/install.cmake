# SPDX-License-Identifier: Apache-2.0
# What find_package(rung) finds: the library, its public headers (core and each operator's own), the
# program.
install(TARGETS rung EXPORT rung_targets)
install(TARGETS rung_program)
install(FILES rung/rung.hpp rung/rung.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rung)
install(DIRECTORY rung/core DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rung FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
install(FILES ${PROJECT_BINARY_DIR}/generated/rung/ops/all.hpp ${PROJECT_BINARY_DIR}/generated/rung/ops/all.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rung/ops)
foreach(operator IN LISTS rung_operators_found)
  # Its contract, what it offers to C, and templates for functors of the user's own.
  install(DIRECTORY rung/ops/${operator} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rung/ops
    FILES_MATCHING PATTERN "${operator}.hpp" PATTERN "${operator}.h" PATTERN "*.cuh")
endforeach()
install(EXPORT rung_targets FILE rungTargets.cmake NAMESPACE rung:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/rung)
configure_package_config_file(cmake/rungConfig.cmake.in ${PROJECT_BINARY_DIR}/rungConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/rung)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/rungConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/rungConfig.cmake ${PROJECT_BINARY_DIR}/rungConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/rung)
