# SPDX-License-Identifier: Apache-2.0
# Sources that are compiled several at a time: what they include takes longer than they do. Where everything is
# compiled anew that is faster; where one file was changed it takes longer, so that it is an option.
option(RUNG_UNITY "Compile several sources as one" OFF)

# rung_compile_together(TARGET). What registers itself is written like its neighbors, with the same local names,
# and what Highway includes again for each instruction set must be the whole of a compilation: those stay alone.
function(rung_compile_together target)
  if(NOT RUNG_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    file(STRINGS ${source} alone REGEX "^const .* self[{(]|foreach_target" LIMIT_COUNT 1)
    if(alone)
      set_source_files_properties(${source} TARGET_DIRECTORY ${target}
        PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
endfunction()
