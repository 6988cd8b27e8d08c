# SPDX-License-Identifier: Apache-2.0
# The test install_small: components of find_package, pkg-config from a private prefix, the static library and the
# removal of an installation, with the operators that this build has.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/installed.cmake)

file(REMOVE_RECURSE ${SCRATCH})
file(MAKE_DIRECTORY ${SCRATCH})
set(prefix ${SCRATCH}/private_prefix)
install_to(${prefix} ${SCRATCH}/manifest)

# Configures the small project with options; `output` is what CMake said, `result` how it ended.
function(configure name)
  execute_process(COMMAND ${CMAKE_COMMAND} -G ${GENERATOR} -S ${CMAKE_CURRENT_LIST_DIR}/small -B ${SCRATCH}/${name}
    "-DCMAKE_PREFIX_PATH=${prefix}" -DCMAKE_CXX_COMPILER=${CXX_COMPILER} -DCMAKE_CXX_FLAGS=${FLAGS} ${ARGN}
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  set(result "${result}" PARENT_SCOPE)
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(accepts name)
  configure(${name} ${ARGN})
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${name}: ${ARGN} is refused:\n${output}")
  endif()
endfunction()

function(refuses name text)
  configure(${name} ${ARGN})
  if(result EQUAL 0 OR NOT output MATCHES "${text}")
    message(FATAL_ERROR "${name}: ${ARGN} is not refused (${result}) with '${text}':\n${output}")
  endif()
endfunction()

function(runs name)
  step(${CMAKE_COMMAND} --build ${SCRATCH}/${name})
  step(${SCRATCH}/${name}/app)
  if(NOT output STREQUAL "6 15\n")
    message(FATAL_ERROR "${name}: the program prints\n${output}")
  endif()
endfunction()

accepts(components -DCOMPONENTS=reduce,cpu -DOPTIONAL_COMPONENTS=gmem)
runs(components)
refuses(unknown "rung has no component 'gmem'. accepted are [^.]*reduce" -DCOMPONENTS=reduce,gmem)
if(LEFT_OUT)
  refuses(left_out "this rung was built without the component '${LEFT_OUT}'. accepted are [^.]*reduce"
    "-DCOMPONENTS=${LEFT_OUT}")
endif()

# The commands of docs/install.md, as a user would paste them, in a folder with app.cpp.
function(documented package)
  file(READ ${prefix}/${DOCUMENTS}/docs/install.md page)
  if(NOT page MATCHES "\n(c\\+\\+ [^\n]*pkg-config --cflags --libs ${package}\\)[^\n]*)")
    message(FATAL_ERROR "docs/install.md has no command that uses pkg-config for ${package}")
  endif()
  set(command "${CMAKE_MATCH_1}")
  string(REGEX REPLACE "^c\\+\\+" "'${CXX_COMPILER}' ${FLAGS}" command "${command}")
  step(${CMAKE_COMMAND} -E env --unset=LD_LIBRARY_PATH "PKG_CONFIG_PATH=${prefix}/${LIBRARIES}/pkgconfig"
    bash -c "cd '${SCRATCH}' && rm -f app && cp '${CMAKE_CURRENT_LIST_DIR}/small/app.cpp' . && ${command} && ./app")
  if(NOT output STREQUAL "6 15\n")
    message(FATAL_ERROR "${command}: the program prints\n${output}")
  endif()
endfunction()
find_program(pkg_config pkg-config)
if(pkg_config)
  documented(rung)
  if(STATIC)
    documented(rung-static)
  endif()
endif()

if(STATIC)
  accepts(static -DCOMPONENTS=static -DLINK=rung::static)
  runs(static)
  # Nothing of the shared library is left in it.
  step(readelf -d ${SCRATCH}/static/app)
  if(output MATCHES "librung[.]so")
    message(FATAL_ERROR "a program linked with rung::static needs librung.so:\n${output}")
  endif()
  refuses(both "RUNG_LINKAGE" -DCOMPONENTS=static -DLINK=rung::static,rung::rung)
endif()

# A file of the user's own stays, and its folder with it; all else of rung goes.
file(WRITE "${prefix}/include/rung/mine.hpp" "")
step(${CMAKE_COMMAND} -D MANIFEST=${SCRATCH}/manifest -P ${UNINSTALL})
file(GLOB_RECURSE left ${prefix}/*)
if(NOT left STREQUAL "${prefix}/include/rung/mine.hpp")
  message(FATAL_ERROR "uninstall leaves ${left}")
endif()
file(GLOB left ${prefix}/include/rung/*)
if(NOT left STREQUAL "${prefix}/include/rung/mine.hpp" OR EXISTS ${prefix}/${DOCUMENTS}
    OR EXISTS ${prefix}/${LIBRARIES}/cmake/rung)
  message(FATAL_ERROR "uninstall leaves the folder of ${left}, or that of documents or of CMake's files")
endif()
