# SPDX-License-Identifier: Apache-2.0
# Debian packages by `cpack`: librung0, rung, librung-dev and rung-doc, one per component (docs/install.md).
set(RUNG_PACKAGE_MAINTAINER "rung maintainers <rung@localhost>" CACHE STRING "Name and address for Debian packages")
mark_as_advanced(RUNG_PACKAGE_MAINTAINER)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME rung)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "${RUNG_PACKAGE_MAINTAINER}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_COMPONENTS_ALL library program headers documents)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
# Stripping, compression and the files of Debian's policy: cmake/package/finish.cmake.
set(CPACK_STRIP_FILES OFF)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/package/finish.cmake)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/package/project_config.cmake)
set(CPACK_RUNG_SOURCE ${PROJECT_SOURCE_DIR})
set(CPACK_RUNG_OBJCOPY ${CMAKE_OBJCOPY})
set(CPACK_RUNG_STRIP ${CMAKE_STRIP})

# What a package must not be made of, said when one is made.
set(CPACK_RUNG_REFUSED "")
if(NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  string(APPEND CPACK_RUNG_REFUSED "CMAKE_INSTALL_PREFIX is ${CMAKE_INSTALL_PREFIX}, a package needs /usr. ")
endif()
foreach(option RUNG_CPU_NATIVE RUNG_PEERS_NATIVE RUNG_SANITIZE)
  if(${option})
    string(APPEND CPACK_RUNG_REFUSED "${option} is ON, a package needs OFF. ")
  endif()
endforeach()

set(same_version "(= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME librung${PROJECT_VERSION_MAJOR})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
# Versions before 1.0 promise no compatible binary interface, so packages that link librung depend on this very one.
set(shlibs "")
set(libraries librung)
if(RUNG_SIMT)
  list(APPEND libraries librung_thread librung_emulate)
endif()
foreach(library IN LISTS libraries)
  string(APPEND shlibs "${library} ${PROJECT_VERSION_MAJOR} ${CPACK_DEBIAN_LIBRARY_PACKAGE_NAME} ${same_version}\n")
endforeach()
file(WRITE ${PROJECT_BINARY_DIR}/package/shlibs "${shlibs}")
file(WRITE ${PROJECT_BINARY_DIR}/package/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/package/shlibs
  ${PROJECT_BINARY_DIR}/package/triggers)
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "parallel kernels: shared library
Tensor operators for C++ and C, from elementwise to attention, each in many
versions from the textbook loop to the fastest.")

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME rung)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS "${CPACK_DEBIAN_LIBRARY_PACKAGE_NAME} ${same_version}")
# `rung emulate` compiles with g++ against the headers, `rung explain` prints the sources among them, and
# `rung bench` loads the other libraries.
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS "g++, librung-dev ${same_version}, \
libopenblas0-openmp | libopenblas0, libblis4-openmp | libblis4, libdnnl3 | libdnnl2")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS rung-doc)
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "parallel kernels: workbench and simulated GPU
Lists, checks, times and explains the kernels of librung, beside OpenBLAS,
BLIS, oneDNN and Eigen, and runs CUDA programs without a GPU.")

set(CPACK_DEBIAN_HEADERS_PACKAGE_NAME librung-dev)
set(CPACK_DEBIAN_HEADERS_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_HEADERS_PACKAGE_DEPENDS "${CPACK_DEBIAN_LIBRARY_PACKAGE_NAME} ${same_version}")
set(CPACK_DEBIAN_HEADERS_PACKAGE_SUGGESTS rung-doc)
if(RUNG_STATIC)
  string(APPEND CPACK_DEBIAN_HEADERS_PACKAGE_DEPENDS ", libfmt-dev, libhwy-dev")
  if(RUNG_SIMT)
    string(APPEND CPACK_DEBIAN_HEADERS_PACKAGE_DEPENDS ", libdw-dev")
  endif()
endif()
set(CPACK_COMPONENT_HEADERS_DESCRIPTION "parallel kernels: headers and kernels' sources
Headers for programs that call librung, files for CMake and pkg-config, and the
source of every kernel.")

set(CPACK_DEBIAN_DOCUMENTS_PACKAGE_NAME rung-doc)
set(CPACK_DEBIAN_DOCUMENTS_PACKAGE_SECTION doc)
set(CPACK_DEBIAN_DOCUMENTS_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_DOCUMENTS_PACKAGE_SHLIBDEPS OFF)
# Its links into the operators' folders lead to the headers.
set(CPACK_DEBIAN_DOCUMENTS_PACKAGE_RECOMMENDS librung-dev)
set(CPACK_COMPONENT_DOCUMENTS_DESCRIPTION "parallel kernels: documents and examples
Pages on the use and the design of rung, and small programs in C and C++.")

# The last change's date, so that the same sources make the same package.
find_program(git_program git)
set(package_date "")
if(git_program)
  execute_process(COMMAND ${git_program} -C ${PROJECT_SOURCE_DIR} log -1 --format=%ct
    OUTPUT_VARIABLE package_date OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(package_date AND NOT DEFINED ENV{SOURCE_DATE_EPOCH})
  set(ENV{SOURCE_DATE_EPOCH} ${package_date})
  string(TIMESTAMP package_date "%a, %d %b %Y %H:%M:%S +0000" UTC)
  unset(ENV{SOURCE_DATE_EPOCH})
else()
  string(TIMESTAMP package_date "%a, %d %b %Y %H:%M:%S +0000" UTC)
endif()
set(CPACK_RUNG_CHANGELOG ${PROJECT_BINARY_DIR}/package/changelog)
file(WRITE ${CPACK_RUNG_CHANGELOG} "rung (${PROJECT_VERSION}) unstable; urgency=medium

  * Packages of rung ${PROJECT_VERSION}, made from its sources by cpack.

 -- ${RUNG_PACKAGE_MAINTAINER}  ${package_date}
")
include(CPack)
