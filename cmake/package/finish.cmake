# SPDX-License-Identifier: Apache-2.0
# Run by cpack on the staged files of every component, before packages are made of them.
cmake_policy(VERSION 3.25)

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# The lines of simulated kernels are in librung.so's debug information, which `rung explain` and `rung check` read.
# It goes into the program's package, where libdw looks for it by build ID; all else is stripped.
function(finish_binary file debug_root)
  execute_process(COMMAND readelf -n ${file} OUTPUT_VARIABLE notes COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND readelf -S --wide ${file} OUTPUT_VARIABLE sections COMMAND_ERROR_IS_FATAL ANY)
  if(sections MATCHES "[.]debug_line " AND file MATCHES "/librung[.]so")
    if(NOT notes MATCHES "Build ID: ([0-9a-f][0-9a-f])([0-9a-f]+)")
      message(FATAL_ERROR "cpack: ${file} has no build ID; link with -Wl,--build-id")
    endif()
    set(debug ${debug_root}/.build-id/${CMAKE_MATCH_1}/${CMAKE_MATCH_2}.debug)
    get_filename_component(folder ${debug} DIRECTORY)
    file(MAKE_DIRECTORY ${folder})
    # lintian: debug-suffix-not-dbg. It is data of the program, not for a debugger alone.
    run(${CPACK_RUNG_OBJCOPY} --only-keep-debug --compress-debug-sections ${file} ${debug})
    file(CHMOD ${debug} PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  endif()
  run(${CPACK_RUNG_STRIP} --strip-unneeded --remove-section=.comment --remove-section=.note ${file})
  # Found by the loader's own configuration.
  file(RPATH_REMOVE FILE ${file})
endfunction()

function(finish_component component)
  set(root ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${component}${CPACK_PACKAGING_INSTALL_PREFIX})
  string(TOUPPER ${component} upper)
  set(documents ${root}/share/doc/${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  file(COPY ${CPACK_RUNG_SOURCE}/cmake/package/copyright ${CPACK_RUNG_CHANGELOG} DESTINATION ${documents}
    FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  file(GLOB manuals ${root}/share/man/man*/*)
  run(gzip -9n ${documents}/changelog ${manuals})
  file(GLOB_RECURSE binaries ${root}/lib/*.so* ${root}/bin/*)
  list(FILTER binaries EXCLUDE REGEX "/rung-nvcc$")  # a script
  file(GLOB archives ${root}/lib/*/librung.a)
  foreach(archive IN LISTS archives)
    run(${CPACK_RUNG_STRIP} --strip-debug --enable-deterministic-archives ${archive})
  endforeach()
  foreach(binary IN LISTS binaries)
    if(NOT IS_SYMLINK ${binary})
      finish_binary(${binary} ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/program/usr/lib/debug)
    endif()
  endforeach()
endfunction()

foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  finish_component(${component})
endforeach()
