# SPDX-License-Identifier: Apache-2.0
# Commands by which CMake calls `rung emulate --build`, which takes nvcc's options.
set(_rung_build "<CMAKE_CUDA_COMPILER> emulate --build")
set(CMAKE_CUDA_COMPILE_OBJECT
  "${_rung_build} <DEFINES> <INCLUDES> <FLAGS> -x cu -c <SOURCE> -o <OBJECT>")
set(CMAKE_CUDA_LINK_EXECUTABLE
  "${_rung_build} <FLAGS> <CMAKE_CUDA_LINK_FLAGS> <LINK_FLAGS> <OBJECTS> -o <TARGET> <LINK_LIBRARIES>")
# Higher than the preference of C++ (30), so that `rung emulate` links every target with a kernel: it adds the libraries
# of the simulated GPU.
set(CMAKE_CUDA_LINKER_PREFERENCE 100)
set(CMAKE_CUDA_CREATE_SHARED_LIBRARY
  "${_rung_build} -shared <LINK_FLAGS> <SONAME_FLAG><TARGET_SONAME> -o <TARGET> <OBJECTS> <LINK_LIBRARIES>")
set(CMAKE_SHARED_LIBRARY_SONAME_CUDA_FLAG "-Wl,-soname,")

# Flags that CMake's generators require, by kind of compilation. Relocatable device code needs no other flag.
set(_CMAKE_CUDA_WHOLE_FLAG "-c")
set(_CMAKE_CUDA_RDC_FLAG "-c")
set(_CMAKE_CUDA_PTX_FLAG "-ptx")
set(CMAKE_DEPFILE_FLAGS_CUDA "-MD -MT <DEP_TARGET> -MF <DEP_FILE>")
set(CMAKE_CUDA_DEPFILE_FORMAT gcc)
set(CMAKE_CUDA_DEPENDS_USE_COMPILER TRUE)
set(CMAKE_INCLUDE_SYSTEM_FLAG_CUDA "-isystem ")
set(CMAKE_CUDA_COMPILE_OPTIONS_PIC -fPIC)
set(CMAKE_CUDA_COMPILE_OPTIONS_PIE -fPIE)
set(CMAKE_CUDA_COMPILE_OPTIONS_VISIBILITY -fvisibility=)
set(CMAKE_CUDA_COMPILE_OPTIONS_WARNING_AS_ERROR "")
set(CMAKE_SHARED_LIBRARY_CUDA_FLAGS -fPIC)
set(CMAKE_CUDA_LINKER_WRAPPER_FLAG "-Wl,")
set(CMAKE_CUDA_LINKER_WRAPPER_FLAG_SEP ",")
string(APPEND CMAKE_CUDA_FLAGS_DEBUG_INIT " -g")
string(APPEND CMAKE_CUDA_FLAGS_RELEASE_INIT " -O3 -DNDEBUG")
string(APPEND CMAKE_CUDA_FLAGS_MINSIZEREL_INIT " -O1 -DNDEBUG")
string(APPEND CMAKE_CUDA_FLAGS_RELWITHDEBINFO_INIT " -O2 -g -DNDEBUG")
foreach(_rung_standard 03 11 14 17 20 23)
  set(CMAKE_CUDA${_rung_standard}_STANDARD_COMPILE_OPTION "-std=c++${_rung_standard}")
  set(CMAKE_CUDA${_rung_standard}_EXTENSION_COMPILE_OPTION "-std=gnu++${_rung_standard}")
  set(CMAKE_CUDA${_rung_standard}_STANDARD__HAS_FULL_SUPPORT TRUE)
endforeach()
set(CMAKE_CUDA_STANDARD_LATEST 23)
