# SPDX-License-Identifier: Apache-2.0
# The OpenCL backend: headers alone to build it, and kernels' sources as constants of the library.
find_path(rung_opencl_headers CL/cl.h)
mark_as_advanced(rung_opencl_headers)
set(rung_has_opencl OFF)
if(RUNG_OPENCL AND RUNG_SANITIZE)
  message(STATUS "OpenCL backend left out: under the sanitizers its drivers are reported for leaks of their own")
elseif(RUNG_OPENCL AND NOT rung_opencl_headers)
  message(STATUS "OpenCL backend left out: no <CL/cl.h> (package opencl-headers)")
elseif(RUNG_OPENCL)
  set(rung_has_opencl ON)
endif()

# Writes generated/.../NNN_name.cl.hpp, with the text of NNN_name.cl and its path, for each kernel's file. When
# configuring, so that tools which read sources without building them find it; a change of a kernel configures again.
function(rung_embed_kernels)
  foreach(kernel IN LISTS ARGN)
    file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${kernel})
    file(READ ${kernel} text)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${kernel})
    string(CONCAT header
      "// SPDX-License-Identifier: Apache-2.0\n// ${path} as a constant; written by the build.\n#pragma once\n\n"
      "#include \"rung/opencl/launch.hpp\"\n\nnamespace rung {\nnamespace {\n\n"
      "constexpr opencl::Source source{\"${path}\", R\"opencl(${text})opencl\"};\n\n"
      "}  // namespace\n}  // namespace rung\n")
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/${path}.hpp CONTENT "${header}" @ONLY)
  endforeach()
endfunction()
