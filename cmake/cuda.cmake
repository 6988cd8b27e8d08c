# SPDX-License-Identifier: Apache-2.0
# How nvcc compiles our sources: for which chips, and with what.
set(RUNG_GPU_ARCHITECTURES 80 90a CACHE STRING
    "Compute capabilities to compile kernels for: 80 (and, as PTX, what came after it), 90a (Hopper)")

option(RUNG_CUDA_UNOPTIMIZED "Compile kernels fast, to be slow: to learn whether they compile" OFF)
if(RUNG_CUDA AND RUNG_CUDA_UNOPTIMIZED)
  # The host's part of these sources; nvcc takes -O once, and puts it behind the options for its compiler.
  string(REPLACE "-O3" "-O0" CMAKE_CUDA_FLAGS_RELEASE "${CMAKE_CUDA_FLAGS_RELEASE}")
endif()

# Sources named *.sm90a.cu use what only Hopper has.
function(rung_compile_for_gpus)
  foreach(source IN LISTS ARGN)
    if(NOT source MATCHES "[.]cu$")
      continue()
    endif()
    set(options --expt-relaxed-constexpr -Xcompiler=-Wall,-Wextra)
    if(80 IN_LIST RUNG_GPU_ARCHITECTURES AND NOT source MATCHES "[.]sm90a[.]cu$")
      list(APPEND options -gencode=arch=compute_80,code=[sm_80,compute_80])
    endif()
    if(90a IN_LIST RUNG_GPU_ARCHITECTURES OR source MATCHES "[.]sm90a[.]cu$")
      list(APPEND options -gencode=arch=compute_90a,code=sm_90a)
    endif()
    if(RUNG_CUDA_UNOPTIMIZED)
      list(APPEND options -Ofc=max) # half of what -Xcicc=-O1 -Xptxas=-O0 takes, where there are many instances
    else()
      # Compressed, the cubins take an eighth of the space. Source lines, for profilers, would be almost half of that:
      # they are there where there is debug information anyway.
      list(APPEND options -compress-mode=size)
      list(APPEND options $<$<CONFIG:Debug,RelWithDebInfo>:-lineinfo>)
    endif()
    set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS ${options})
  endforeach()
endfunction()
