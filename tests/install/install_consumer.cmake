# SPDX-License-Identifier: Apache-2.0
# The test install_consumer, step by step; the first step that fails fails it.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/installed.cmake)

file(REMOVE_RECURSE ${SCRATCH})
file(MAKE_DIRECTORY ${SCRATCH})
# A path with a blank in it, and one that is moved after installing: neither may matter.
install_to(${SCRATCH}/first ${SCRATCH}/manifest)
file(RENAME ${SCRATCH}/first "${SCRATCH}/moved prefix")
set(prefix "${SCRATCH}/moved prefix")

step(${CMAKE_COMMAND} -G ${GENERATOR} -S ${CONSUMER} -B ${SCRATCH}/build
  "-DCMAKE_PREFIX_PATH=${prefix}" -DCMAKE_C_COMPILER=${C_COMPILER}
  -DCMAKE_CXX_COMPILER=${CXX_COMPILER} -DCMAKE_C_FLAGS=${FLAGS} -DCMAKE_CXX_FLAGS=${FLAGS}
  "-DEXAMPLES=${prefix}/${DOCUMENTS}/examples")
step(${CMAKE_COMMAND} --build ${SCRATCH}/build)
step(${SCRATCH}/build/cpp_app)
step(${SCRATCH}/build/c_app)
step(${SCRATCH}/build/functor_app)

# The examples, as they were installed, print what they are to print.
function(example name)
  step(${SCRATCH}/build/examples/example_${name})
  foreach(line IN LISTS ARGN)
    if(NOT output MATCHES "(^|\n)${line}\n")
      message(FATAL_ERROR "example_${name} prints no line '${line}':\n${output}")
    endif()
  endforeach()
endfunction()
example(equalize "before: grey levels 100 to 149" "after: grey levels 0 to 255")
example(layer_norm "row 0: mean 0.000, variance 1.000" "dbeta.0. = 48")
example(attention "largest difference from the plain loop: below 1e-6")
example(own_functor "cpu: 5 and 13")

# Without CMake, by pkg-config, where that is.
find_program(pkg_config pkg-config)
if(pkg_config)
  step(${CMAKE_COMMAND} -E env "PKG_CONFIG_PATH=${prefix}/${LIBRARIES}/pkgconfig" ${pkg_config} --cflags --libs rung)
  separate_arguments(flags UNIX_COMMAND "${output} ${FLAGS}")
  step(${C_COMPILER} -std=c99 ${CONSUMER}/app.c -o ${SCRATCH}/pkg_config_app ${flags})
  step(${CMAKE_COMMAND} -E env "LD_LIBRARY_PATH=${prefix}/${LIBRARIES}" ${SCRATCH}/pkg_config_app)
endif()

# The documents, with everything that they link to, and the manual page.
step(${PYTHON} ${LINKS} ${prefix}/${DOCUMENTS})
file(STRINGS ${prefix}/${MANUALS}/man1/rung.1 manual REGEX "^[.]TH RUNG 1 .*rung [0-9]+[.][0-9]+[.][0-9]+")
if(NOT manual OR NOT EXISTS ${prefix}/${DOCUMENTS}/LICENSE)
  message(FATAL_ERROR "no manual page of a version, or no LICENSE, in the prefix")
endif()

# The CUDA programs that `rung emulate --help` names.
file(GLOB programs ${prefix}/${DOCUMENTS}/examples/cuda/*_bug.cu)
if(NOT programs)
  message(FATAL_ERROR "examples/cuda is not in the prefix")
endif()

# Completion, as bash reads it, knows the program's commands.
step(${CMAKE_COMMAND} -E env "PATH=${prefix}/bin:$ENV{PATH}" bash -c
  "source '${prefix}/${DATA}/bash-completion/completions/rung' && COMP_WORDS=(rung expl) && COMP_CWORD=1 &&
   _rung_complete && echo \"\${COMPREPLY[*]}\"")
if(NOT output MATCHES "explain" OR NOT EXISTS "${prefix}/${DATA}/zsh/site-functions/_rung"
    OR NOT EXISTS "${prefix}/${DATA}/fish/vendor_completions.d/rung.fish")
  message(FATAL_ERROR "the installed completion does not make 'explain' of 'expl':\n${output}")
endif()

# The installed program finds its library, and with it the modules of the peers.
step(${prefix}/bin/rung list gemm --json)
if(NOT output MATCHES "rung/ops/gemm/cpu/")
  message(FATAL_ERROR "the installed program lists no cpu rung of gemm:\n${output}")
endif()
# It reads what rungs say of themselves where their sources were installed.
foreach(rung naive_ijk tiny) # a step, and one that is beside the ladder
  step(${prefix}/bin/rung explain gemm/${rung} --gpu a40 "f32 8x8x8")
  if(NOT output MATCHES "Idea ")
    message(FATAL_ERROR "the installed program does not find the source of ${rung}:\n${output}")
  endif()
endforeach()
file(GLOB_RECURSE typed ${prefix}/byte_dots.cpp)
if(NOT typed)
  message(FATAL_ERROR "the sources of gemm/cpu/types are not in the prefix")
endif()
file(GLOB_RECURSE modules ${prefix}/librung_peer_gemm_eigen_*.so)
if(modules AND NOT output MATCHES "Eigen [0-9]" AND output MATCHES "librung_peer_gemm_eigen[^\"]*not found")
  message(FATAL_ERROR "the installed program does not find its Eigen module:\n${output}")
endif()
