# SPDX-License-Identifier: Apache-2.0
# reduce: templates that take functors compile for the simulated GPU where they are told to.
if(RUNG_SIMT)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/rung/ops/reduce/test/reduce_simt_test.cpp
    PROPERTIES COMPILE_DEFINITIONS RUNG_SIMT=1 SKIP_UNITY_BUILD_INCLUSION ON)
endif()
