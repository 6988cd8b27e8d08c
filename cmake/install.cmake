# SPDX-License-Identifier: Apache-2.0
# What find_package(rung) finds: the library, its headers, the program.
install(TARGETS rung EXPORT rung_targets)
install(TARGETS rung_program)
install(FILES rung/rung.hpp rung/rung.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rung)
install(DIRECTORY rung/core DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rung FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
install(FILES ${PROJECT_BINARY_DIR}/generated/rung/ops/all.hpp ${PROJECT_BINARY_DIR}/generated/rung/ops/all.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rung/ops)
# Rungs' sources too: `rung explain` reads what they say of themselves, and prints them.
foreach(operator IN LISTS rung_operators_found)
  install(DIRECTORY rung/ops/${operator} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rung/ops
    FILES_MATCHING PATTERN "*.hpp" PATTERN "${operator}.h" PATTERN "*.cuh" PATTERN "cpu_*.cpp" PATTERN "cuda_*.cu"
    PATTERN "peer_*" EXCLUDE)
endforeach()
# What the templates that take functors (*.cuh) are made of; the sources go into the program that uses them.
foreach(part cpu device simt)
  install(DIRECTORY rung/${part} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rung
    FILES_MATCHING PATTERN "*.hpp" PATTERN "cuda_launch.cu" PATTERN "cuda_tensor_map.cu")
endforeach()
# CUDA's headers for programs on the simulated GPU: names without endings among them.
install(DIRECTORY rung/simt/include DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rung/simt)
install(EXPORT rung_targets FILE rungTargets.cmake NAMESPACE rung:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/rung)
configure_package_config_file(cmake/rungConfig.cmake.in ${PROJECT_BINARY_DIR}/rungConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/rung PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/rungConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/rungConfig.cmake ${PROJECT_BINARY_DIR}/rungConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/rung)
