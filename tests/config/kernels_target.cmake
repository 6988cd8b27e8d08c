# SPDX-License-Identifier: Apache-2.0
# The test config_kernels_target: rung::kernels compiles for the simulated GPU where the library has it, and
# nowhere else; functors of a library without it would not link.
cmake_minimum_required(VERSION 3.25)
include(CMakePackageConfigHelpers)

file(REMOVE_RECURSE ${SCRATCH})
foreach(RUNG_SIMT ON OFF)
  set(prefix ${SCRATCH}/${RUNG_SIMT})
  set(CMAKE_INSTALL_PREFIX ${prefix})
  set(CMAKE_INSTALL_INCLUDEDIR include)
  configure_package_config_file(${TEMPLATE} ${prefix}/lib/cmake/rung/rungConfig.cmake
    INSTALL_DESTINATION lib/cmake/rung PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
  file(MAKE_DIRECTORY ${prefix}/include)
  file(WRITE ${prefix}/lib/cmake/rung/rungTargets.cmake "add_library(rung::rung INTERFACE IMPORTED)\n")
  file(WRITE ${prefix}/project/CMakeLists.txt [[
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES NONE)
find_package(rung REQUIRED)
get_target_property(definitions rung::kernels INTERFACE_COMPILE_DEFINITIONS)
message(STATUS "rung::kernels defines '${definitions}'")
]])
  execute_process(COMMAND ${CMAKE_COMMAND} -G ${GENERATOR} -S ${prefix}/project -B ${prefix}/build
    -DCMAKE_PREFIX_PATH=${prefix} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(FIND "${output}" "RUNG_SIMT=1" found)
  if(NOT result EQUAL 0 OR NOT output MATCHES "rung::kernels defines"
      OR (RUNG_SIMT AND found EQUAL -1) OR (NOT RUNG_SIMT AND NOT found EQUAL -1))
    message(FATAL_ERROR "with RUNG_SIMT=${RUNG_SIMT}:\n${output}")
  endif()
endforeach()
