# SPDX-License-Identifier: Apache-2.0
# Kernel files, for CPUs and GPUs, that are compiled once per element type (rung/cpu/split.hpp).
option(RUNG_SPLIT "Compile slow kernel files once for each element type; off: for float alone, for linters" ON)

# rung_split(SOURCES_VARIABLE): in a list of sources, each that names its types is replaced by one per type, which
# defines RUNG_SPLIT_TYPE and includes it. A.sm90a.cu becomes A.TYPE.sm90a.cu, so that its name still tells the chips.
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
    string(REGEX MATCH "([.]sm90a)?[.][a-z]+$" suffix ${path})
    string(REGEX REPLACE "([.]sm90a)?[.][a-z]+$" "" name ${path})
    set(once 1)
    foreach(type IN LISTS types)
      string(REGEX REPLACE "[^A-Za-z0-9_]+" "_" type_name ${type})
      set(part ${PROJECT_BINARY_DIR}/generated/split/${name}.${type_name}${suffix})
      file(CONFIGURE OUTPUT ${part} CONTENT
        "#define RUNG_SPLIT_TYPE ${type}\n#define RUNG_SPLIT_ONCE ${once}\n#include \"${path}\"\n")
      list(APPEND result ${part})
      set(once 0)
    endforeach()
  endforeach()
  set(${variable} ${result} PARENT_SCOPE)
endfunction()
