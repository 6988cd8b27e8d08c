# SPDX-License-Identifier: Apache-2.0
# gemm: kernels differ by the kind of CPU (rung/cpu/prefetch.hpp). They are checked as on the other kind,
# too; one of the two repeats what check_gemm does.
if(NOT RUNG_SANITIZE)
  foreach(prefetch 0 1)
    add_test(NAME check_gemm_prefetch_${prefetch} COMMAND rung_program check gemm/threads --backend=cpu)
    set_tests_properties(check_gemm_prefetch_${prefetch} PROPERTIES TIMEOUT 1200 LABELS check
      ENVIRONMENT RUNG_CPU_PREFETCH=${prefetch})
  endforeach()
endif()
