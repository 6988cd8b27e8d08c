# SPDX-License-Identifier: Apache-2.0
# attention_backward: more tiles of packed rows than an H200 has SMs, so that a persistent block stores one tile and
# then loads another into the same shared memory. `check` leaves such a problem out, since its simulation takes seconds.
if(RUNG_SIMT AND NOT RUNG_SANITIZE)
  add_test(NAME check_attention_backward_packed_tiles COMMAND rung_program check attention_backward/hopper_pipelined
    --backend=simt --variant plain --max-seconds 4000 --problem "bf16 36x4x3x8,kv=1,keys=3,packed")
  set_tests_properties(check_attention_backward_packed_tiles PROPERTIES TIMEOUT 600 LABELS "attention_backward")
endif()
