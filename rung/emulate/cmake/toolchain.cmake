# SPDX-License-Identifier: Apache-2.0
# Toolchain file for CMake's CUDA language on the simulated GPU:
# cmake --toolchain "$(rung emulate --toolchain-file)" -S . -B build
# Projects need no change: `rung emulate --build` takes the place of nvcc.
get_filename_component(rung_root "${CMAKE_CURRENT_LIST_DIR}/../../../.." ABSOLUTE)
find_program(RUNG_PROGRAM rung HINTS "${rung_root}/bin" NO_CMAKE_FIND_ROOT_PATH REQUIRED)

# Folder of Compiler/Rung-CUDA.cmake and FindCUDAToolkit.cmake.
list(PREPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}")

set(CMAKE_CUDA_COMPILER "${RUNG_PROGRAM}")
set(CMAKE_CUDA_COMPILER_ID Rung)
set(CMAKE_CUDA_COMPILER_VERSION 13.0)
# Skips CMake's identification of the compiler; its results are set here.
set(CMAKE_CUDA_COMPILER_ID_RUN TRUE)
set(CMAKE_CUDA_COMPILER_FORCED TRUE)
set(CMAKE_CUDA_STANDARD_COMPUTED_DEFAULT 20)
set(CMAKE_CUDA_EXTENSIONS_COMPUTED_DEFAULT ON)
set(CMAKE_CUDA_COMPILE_FEATURES cuda_std_03 cuda_std_11 cuda_std_14 cuda_std_17 cuda_std_20 cuda_std_23)
set(CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES "${rung_root}/include/rung/emulate/include")
set(CMAKE_CUDA_ARCHITECTURES 90 CACHE STRING "CUDA architectures")
# Command through which ctest and custom commands run programs.
set(CMAKE_CROSSCOMPILING_EMULATOR "/bin/sh;${CMAKE_CURRENT_LIST_DIR}/run.sh;${RUNG_PROGRAM}")
# Variables that try_compile() passes to its projects, which read this file again.
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES RUNG_PROGRAM)
