# SPDX-License-Identifier: Apache-2.0
# Libraries from the distribution; nothing is downloaded, nothing vendored.
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(hwy REQUIRED IMPORTED_TARGET libhwy)
if(RUNG_SIMT)
  find_package(Boost REQUIRED COMPONENTS context)
endif()
if(RUNG_CUDA)
  # CMake 3.25 does not know C++20 for CUDA, so the flag is set by hand in library.cmake.
  set(CMAKE_CUDA_ARCHITECTURES OFF)
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  enable_language(CUDA)
  find_package(CUDAToolkit 13 REQUIRED)
endif()
