#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cpu_seconds.sh LOG COMMAND ARGUMENT...: runs a compiler and appends "SECONDS OUTPUT" to LOG: the processor time that
# it took, and the file after its -o. CMake puts it before every compiler where RUNG_BUILD_TIMES is on; ninja's own
# log has only elapsed time, which depends on what else the machine does.
log=$1
shift
output='' before=''
for word in "$@"; do
  if [[ $before == -o ]]; then output=$word; fi
  before=$word
done
"$@"
status=$?
# Its second line is that of the children: "1m2.345s 0m0.678s". In a pipeline it would be a subshell's.
times >"$log.$$"
awk -v output="$output" 'NR == 2 {
  for (i = 1; i <= 2; ++i) { split($i, part, /[ms]/); seconds += 60 * part[1] + part[2] }
  printf "%.2f %s\n", seconds, output }' "$log.$$" >>"$log"
rm -f -- "$log.$$"
exit "$status"
