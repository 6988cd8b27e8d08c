# SPDX-License-Identifier: Apache-2.0
# gemm: kernels differ by the kind of CPU (rung/cpu/prefetch.hpp). They are checked as on the other kind,
# too; one of the two repeats what check_gemm does.
# Most of its tests run simulated kernels, on which the CPU's instruction set has no bearing.
set(instruction_set_tests "*/cpu:GemmByteDots.*:GemmBytes.*OnACpu:GemmCpu*.*:GemmGrouped.*:GemmRepeats.*")
if(NOT RUNG_SANITIZE)
  foreach(prefetch 0 1)
    add_test(NAME check_gemm_prefetch_${prefetch} COMMAND rung_program check gemm/threads --backend=cpu)
    set_tests_properties(check_gemm_prefetch_${prefetch} PROPERTIES TIMEOUT 1200 LABELS "check;long"
      ENVIRONMENT RUNG_CPU_PREFETCH=${prefetch})
  endforeach()
endif()
