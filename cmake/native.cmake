# SPDX-License-Identifier: Apache-2.0
# rung_native_target: which of Highway's targets kernels run as on this machine (Highway is asked, which would
# choose at run time), or nothing if that is the fallback. As a baseline it is compiled alone, by the same
# pragmas as ever: no flag such as -march, which would change the scalar code around it too.
include(CheckCXXSourceRuns)

set(rung_native_target "")
set(CMAKE_REQUIRED_LIBRARIES PkgConfig::hwy)
foreach(target IN ITEMS HWY_AVX2 HWY_AVX3)
  check_cxx_source_runs("
    #include <hwy/targets.h>
    int main() { return (hwy::SupportedTargets() & ${target}) != 0 ? 0 : 1; }" rung_has_${target})
  if(rung_has_${target})
    set(rung_native_target ${target})
  endif()
endforeach()
unset(CMAKE_REQUIRED_LIBRARIES)
