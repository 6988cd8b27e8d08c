# SPDX-License-Identifier: Apache-2.0
# The components of find_package(rung COMPONENTS ...): operators and backends of this library. Those of the source
# tree that it lacks are named too, so that a message can tell "built without" from "unknown".
set(rung_components ${rung_operators_found} cpu)
set(rung_components_left_out "")
foreach(folder IN LISTS operator_folders)
  get_filename_component(operator ${folder} NAME)
  if(EXISTS ${folder}/${operator}.hpp AND NOT operator IN_LIST rung_components)
    list(APPEND rung_components_left_out ${operator})
  endif()
endforeach()
foreach(component cuda simt static opencl)
  string(TOUPPER ${component} option)
  if(RUNG_${option} AND (rung_has_opencl OR NOT component STREQUAL opencl))
    list(APPEND rung_components ${component})
  else()
    list(APPEND rung_components_left_out ${component})
  endif()
endforeach()
