# SPDX-License-Identifier: Apache-2.0
# What the wheel holds beside python/rung: the extension module, the operators' Python files, and below rung/_prefix
# the installation that the module and the program need. scikit-build-core sets SKBUILD and installs the components
# that pyproject.toml names; destinations are relative to rung/_prefix. Without it nothing here is installed.
if(NOT SKBUILD)
  return()
endif()

# All that a wheel is made of: in a build tree with tests, these are not built for it.
add_custom_target(rung_python_package)
add_dependencies(rung_python_package rung rung_program)
if(TARGET _rung)
  add_dependencies(rung_python_package _rung)
  set_target_properties(_rung PROPERTIES INSTALL_RPATH "$ORIGIN/_prefix/${CMAKE_INSTALL_LIBDIR}")
  install(TARGETS _rung LIBRARY DESTINATION .. COMPONENT python)
endif()
rung_operator_sources(operator_modules python/*.py)
if(operator_modules)
  install(FILES ${operator_modules} DESTINATION ../_ops COMPONENT python)
endif()

# A wheel has no symbolic links: the files themselves have the names that the loader looks for.
foreach(library rung rung_thread rung_emulate)
  if(TARGET ${library})
    set_target_properties(${library} PROPERTIES VERSION ${PROJECT_VERSION_MAJOR})
  endif()
endforeach()

# "python" is the last component to be installed: by then every file is there.
install(CODE "set(objcopy \"${CMAKE_OBJCOPY}\")
set(prefix \"\${CMAKE_INSTALL_PREFIX}\")
set(folder \"${CMAKE_INSTALL_LIBDIR}\")" COMPONENT python)
install(SCRIPT ${PROJECT_SOURCE_DIR}/cmake/package/strip_wheel.cmake COMPONENT python)
