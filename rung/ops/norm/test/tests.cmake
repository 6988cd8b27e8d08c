# SPDX-License-Identifier: Apache-2.0
# norm: prefetching from memory depends on the kind of CPU (rung/cpu/prefetch.hpp). These tests
# force either kind; one of them repeats test_norm.
if(NOT RUNG_SANITIZE)
  foreach(prefetch 0 1)
    add_test(NAME test_norm_prefetch_${prefetch} COMMAND test_norm --gtest_filter=NormCpu.SameBitsPastTheCaches)
    set_tests_properties(test_norm_prefetch_${prefetch} PROPERTIES TIMEOUT 600 LABELS norm
      ENVIRONMENT RUNG_CPU_PREFETCH=${prefetch})
  endforeach()
endif()
