#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# lint.sh TOOL BUILD JOBS [FILE...]: clang-tidy over the library, the workbench and the program (or over
# the files given), and shellcheck over the scripts. Silent where all is well.
set -euo pipefail
tool=$1 build=$2 jobs=$3
shift 3
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."

if command -v shellcheck >/dev/null; then shellcheck rung.sh .ci/run tests/style/lint.sh tools/*.sh; fi

sources=("$@")
if [[ ${#sources[@]} -eq 0 ]]; then
  # Peers' modules are other people's templates; tests are held to their compiler's warnings.
  mapfile -t sources < <(find rung -name '*.cpp' -not -path '*/peer_*/*' | sort)
fi
compiled=()
for source in "${sources[@]}"; do
  # Only what this build compiles has a compile command (the CUDA backend may be switched off).
  if grep -q "/${source}\"" "$build/compile_commands.json"; then compiled+=("$source"); fi
done
printf 'clang-tidy (%s) over %d files\n' "$tool" "${#compiled[@]}" >&2
# omp.h is taken from g++, which compiles rung, since clang's own is in a package apart; it uses an
# attribute with arguments that clang does not know.
# --quiet still counts suppressed warnings on stderr; those lines are dropped, all others kept.
# Highway's files are looked at for one instruction set instead of three.
printf '%s\0' "${compiled[@]}" |
  xargs -0 -n 1 -P "$jobs" "$tool" --quiet -p "$build" --extra-arg=-Wno-unknown-warning-option \
    --extra-arg=-DHWY_COMPILE_ONLY_STATIC --extra-arg=-march=haswell \
    --extra-arg=-idirafter "--extra-arg=$(c++ -print-file-name=include)" \
    "--extra-arg=-D__malloc__(...)=__malloc__" \
    2> >(grep -v -E '^[0-9]+ warnings? (generated|treated)' >&2)
