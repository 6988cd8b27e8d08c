# SPDX-License-Identifier: Apache-2.0
# Run when a wheel's files are installed: strips binaries, and replaces the linker's symbolic links.
cmake_policy(VERSION 3.25)

# librung.so keeps .debug_*, in which `rung explain` and `rung check` read the lines of simulated kernels.
file(GLOB binaries ${prefix}/${folder}/*.so.* ${prefix}/bin/* ${prefix}/../_rung*.so)
list(FILTER binaries EXCLUDE REGEX "/rung-nvcc$")  # a script
foreach(binary IN LISTS binaries)
  set(keep "")
  if(binary MATCHES "/librung[.]so")
    set(keep --keep-section=.debug_* --compress-debug-sections=zlib)
  endif()
  execute_process(COMMAND ${objcopy} --strip-unneeded --remove-section=.comment ${keep} ${binary}
    COMMAND_ERROR_IS_FATAL ANY)
endforeach()

# A wheel has no symbolic links: librung.so would be a second copy. For -lrung a linker script does.
file(GLOB links ${prefix}/${folder}/*.so)
foreach(link IN LISTS links)
  if(IS_SYMLINK ${link})
    file(READ_SYMLINK ${link} target)
    file(REMOVE ${link})
    file(WRITE ${link} "INPUT(${target})\n")
  endif()
endforeach()
