#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a compiler, and keeps what ptxas says of kernels (-Xptxas -v) beside the object, as OBJECT.usage.
# Whatever else the compiler says is passed on.
# usage: keep_usage.sh COMPILER ... -o OBJECT ...
object=
previous=
for word in "$@"; do
  [ "$previous" = -o ] && object=$word
  previous=$word
done
[ -n "$object" ] || exec "$@"
said='^ptxas info|^    [0-9]+ bytes stack frame'
"$@" 2> "$object.said"
status=$?
grep -E "$said" "$object.said" > "$object.usage"
grep -vE "$said" "$object.said" >&2
rm -f "$object.said"
exit $status
