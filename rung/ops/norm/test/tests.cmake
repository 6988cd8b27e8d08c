# SPDX-License-Identifier: Apache-2.0
# norm: what comes from memory is asked for by the kind of CPU (rung/cpu/prefetch.hpp). Rows are done as
# on the other kind, too; one of the two repeats what test_norm does.
if(NOT RUNG_SANITIZE)
  foreach(prefetch 0 1)
    add_test(NAME test_norm_prefetch_${prefetch} COMMAND test_norm --gtest_filter=NormCpu.SameBitsPastTheCaches)
    set_tests_properties(test_norm_prefetch_${prefetch} PROPERTIES TIMEOUT 600 LABELS norm
      ENVIRONMENT RUNG_CPU_PREFETCH=${prefetch})
  endforeach()
endif()
