# SPDX-License-Identifier: Apache-2.0
# For the tests of an installation.

# Runs a command; `output` is what it printed. Its failure is the test's.
function(step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGN}\nfailed (${result}):\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# Installs BUILD_DIRECTORY to a prefix, and keeps the list of its files as `manifest`. The build's own list stays
# what the user's last installation made it.
function(install_to prefix manifest)
  set(own ${BUILD_DIRECTORY}/install_manifest.txt)
  if(EXISTS ${own})
    file(COPY_FILE ${own} ${own}.kept)
  endif()
  step(${CMAKE_COMMAND} --install ${BUILD_DIRECTORY} --prefix ${prefix})
  file(RENAME ${own} ${manifest})
  if(EXISTS ${own}.kept)
    file(RENAME ${own}.kept ${own})
  endif()
endfunction()
