# SPDX-License-Identifier: Apache-2.0
# The component "wheel": with the components that are installed anyway, all that is in a wheel. The package is the
# folder above the prefix, rung/_prefix (pyproject.toml). scikit-build-core sets SKBUILD; nothing is done without.
if(NOT SKBUILD)
  return()
endif()

# All that a wheel is made of: in a build tree with tests, these are not built for it.
add_custom_target(rung_wheel)
add_dependencies(rung_wheel rung rung_program)

if(TARGET rung_python)
  add_dependencies(rung_wheel rung_python)
  set_target_properties(rung_python PROPERTIES INSTALL_RPATH "$ORIGIN/_prefix/${CMAKE_INSTALL_LIBDIR}")
  install(TARGETS rung_python LIBRARY DESTINATION .. COMPONENT wheel)
  install(CODE "execute_process(COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/gather.py --copy
    ${CMAKE_CURRENT_SOURCE_DIR}/rung \${CMAKE_INSTALL_PREFIX}/.. ${gathered_functions}
    COMMAND_ERROR_IS_FATAL ANY)" COMPONENT wheel)
endif()

# A wheel has no symbolic links: the files themselves have the names that the loader looks for.
foreach(library rung rung_thread rung_emulate)
  if(TARGET ${library})
    set_target_properties(${library} PROPERTIES VERSION ${PROJECT_VERSION_MAJOR})
  endif()
endforeach()

# The last component to be installed: by then every file is there.
install(CODE "set(objcopy \"${CMAKE_OBJCOPY}\")
set(prefix \"\${CMAKE_INSTALL_PREFIX}\")
set(folder \"${CMAKE_INSTALL_LIBDIR}\")" COMPONENT wheel)
install(SCRIPT ${PROJECT_SOURCE_DIR}/cmake/package/strip_wheel.cmake COMPONENT wheel)

# License texts of the libraries that auditwheel copies into the wheel, from the system's packages.
if(TARGET rung_python AND SKBUILD_METADATA_DIR)
  install(CODE "file(GLOB binaries \${prefix}/\${folder}/*.so.* \${prefix}/\${folder}/rung/*.so \${prefix}/bin/*)
execute_process(COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/python/licenses.py
  ${SKBUILD_METADATA_DIR}/licenses/bundled \${binaries} COMMAND_ERROR_IS_FATAL ANY)" COMPONENT wheel)
endif()
