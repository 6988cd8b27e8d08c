# SPDX-License-Identifier: Apache-2.0
# Module for find_package(CUDAToolkit): the parts of the toolkit that the simulated GPU has. Every program is linked
# with these libraries anyway, so the targets add only the include folders, and C++20, which the headers need in C++
# sources too.
get_filename_component(_rung_root "${CMAKE_CURRENT_LIST_DIR}/../../../.." ABSOLUTE)
set(CUDAToolkit_FOUND TRUE)
set(CUDAToolkit_VERSION 13.0)
set(CUDAToolkit_VERSION_MAJOR 13)
set(CUDAToolkit_VERSION_MINOR 0)
set(CUDAToolkit_NVCC_EXECUTABLE "${RUNG_PROGRAM}")
set(CUDAToolkit_BIN_DIR "${_rung_root}/bin")
set(CUDAToolkit_INCLUDE_DIRS "${_rung_root}/include/rung/emulate/include" "${_rung_root}/include")
foreach(_rung_part toolkit cudart cudart_static cuda_driver cudadevrt cublas cublas_static cublasLt cublasLt_static
    curand curand_static nvToolsExt nvtx3)
  if(NOT TARGET CUDA::${_rung_part})
    add_library(CUDA::${_rung_part} INTERFACE IMPORTED)
    target_include_directories(CUDA::${_rung_part} SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
    target_compile_features(CUDA::${_rung_part} INTERFACE cxx_std_20)
  endif()
endforeach()
