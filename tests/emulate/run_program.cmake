# SPDX-License-Identifier: Apache-2.0
# One program under every order: it must end with 0 and print OK each time and nothing else.
execute_process(COMMAND ${RUNG} emulate ${OPTIONS} ${PROGRAM} RESULT_VARIABLE code
  OUTPUT_VARIABLE out ERROR_VARIABLE err)
if(NOT code EQUAL 0 OR NOT out STREQUAL "OK\nOK\nOK\n" OR NOT err STREQUAL "")
  message(FATAL_ERROR "exit code ${code}\n${out}${err}")
endif()
