# SPDX-License-Identifier: Apache-2.0
# Kernel files that are compiled once for each element type (rung/cpu/split.hpp).
option(RUNG_SPLIT "Compile slow kernel files once for each element type; off: for float alone, for linters" ON)

# rung_split(SOURCES_VARIABLE): in a list of sources, each that names its types is replaced by one per type, which
# defines RUNG_SPLIT_TYPE and includes it.
function(rung_split variable)
  set(result)
  foreach(source IN LISTS ${variable})
    file(STRINGS ${source} line REGEX "^#include \"rung/cpu/split.hpp\"  // types: " LIMIT_COUNT 1)
    if(NOT RUNG_SPLIT OR NOT line)
      list(APPEND result ${source})
      continue()
    endif()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    string(REGEX REPLACE "^.*// types: " "" types "${line}")
    separate_arguments(types)
    file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${source})
    string(REGEX REPLACE "[.]cpp$" "" name ${path})
    set(once 1)
    foreach(type IN LISTS types)
      set(part ${PROJECT_BINARY_DIR}/generated/split/${name}.${type}.cpp)
      file(CONFIGURE OUTPUT ${part} CONTENT
        "#define RUNG_SPLIT_TYPE ${type}\n#define RUNG_SPLIT_ONCE ${once}\n#include \"${path}\"\n")
      list(APPEND result ${part})
      set(once 0)
    endforeach()
  endforeach()
  set(${variable} ${result} PARENT_SCOPE)
endfunction()
