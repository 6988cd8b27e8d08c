#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a compiler, and keeps what ptxas says of kernels (-Xptxas -v) beside the object, as OBJECT.usage.
# Whatever else the compiler says is passed on. That ptxas serializes wgmma, or ignores setmaxnreg (C7508 to
# C7517), is an error where it optimizes: such a kernel is right, and slow.
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
case "$*" in
  *-Xptxas=-O0*) ;;
  *)
    if grep -E '\(C75(0[89]|1[0-7])\)' "$object.said" >&2; then
      status=1
      rm -f "$object"  # else the next build would take it
    fi ;;
esac
rm -f "$object.said"
exit $status
