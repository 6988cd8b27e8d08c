#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# lint.sh TOOL BUILD JOBS [--all | FILE...]: clang-tidy over the library, the workbench and the program (or
# over the files given), and shellcheck over the scripts. Silent where all is well.
#
# clang-tidy takes several times what compiling takes. All sources were found clean at the commit that
# tests/style/linted names; since then, a source need only be looked at again if it, or a header that it
# includes, has changed. --all looks at all of them (and where it finds nothing, that file may be moved on).
set -euo pipefail
tool=$1 build=$2 jobs=$3
shift 3
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."

if command -v shellcheck >/dev/null; then shellcheck rung.sh .ci/run tests/style/lint.sh tools/*.sh; fi

# Prints what differs from the commit $1 (nothing here: no such commit, or what is looked for has changed).
changed_since() {
  git cat-file -e "$1^{commit}" 2>/dev/null || return 1
  git diff --quiet "$1" -- .clang-tidy tests/style/lint.sh || return 1
  git diff --name-only "$1"
  git ls-files --others --exclude-standard
}

# Of the sources on standard input, those that are among the changed files or include one of them.
touched_by() {
  awk -v root="$PWD/" '
    FILENAME == "-" { wanted[$0] = 1; next }
    pass == 1 { changed[$0] = 1; next }
    /^[^ ]/ { source = ""; next }
    /^ / {
      path = $1; sub("^" root, "", path)
      if (source == "") source = path
      if (path in changed) touched[source] = 1
    }
    END { for (s in wanted) if (s in touched || s in changed) print s }
  ' - pass=1 "$1" pass=2 <(ninja -C "$build" -t deps) | sort
}

# Peers' modules are other people's templates; tests are held to their compiler's warnings. cuBLAS's
# functions are kernels, compiled as g++ alone does.
all_sources() { find rung -name '*.cpp' -not -path '*/peers/*/*' -not -path '*/emulate/cublas/*' | sort; }

if [[ $# -gt 0 && $1 != --all ]]; then
  sources=("$@")
else
  changes="$(mktemp)"
  trap 'rm -f -- "$changes"' EXIT
  if [[ ${1:-} != --all ]] && changed_since "$(<tests/style/linted)" >"$changes"; then
    mapfile -t sources < <(all_sources | touched_by "$changes")
  else
    mapfile -t sources < <(all_sources)
  fi
fi
compiled=()
for source in "${sources[@]}"; do
  # Only what this build compiles has a compile command (the CUDA backend may be switched off).
  if grep -q "/${source}\"" "$build/compile_commands.json"; then compiled+=("$source"); fi
done
printf 'clang-tidy (%s) over %d files\n' "$tool" "${#compiled[@]}" >&2
if [[ ${#compiled[@]} -eq 0 ]]; then exit 0; fi
# As the library compiles them: tests compile some of them again for the simulated GPU, with options that clang
# does not know.
commands="$(mktemp -d)"
trap 'rm -rf -- "${changes:-}" "$commands"' EXIT
python3 - "$build/compile_commands.json" >"$commands/compile_commands.json" <<'PYTHON'
import json
import sys
json.dump([one for one in json.load(open(sys.argv[1])) if "-gstatement-frontiers" not in one["command"]], sys.stdout)
PYTHON
# omp.h is taken from g++, which compiles rung, since clang's own is in a package apart; it uses an
# attribute with arguments that clang does not know.
# --quiet still counts suppressed warnings on stderr; those lines are dropped, all others kept.
# Highway's files are looked at for one instruction set instead of three.
printf '%s\0' "${compiled[@]}" |
  xargs -0 -n 1 -P "$jobs" "$tool" --quiet -p "$commands" --extra-arg=-Wno-unknown-warning-option \
    --extra-arg=-DHWY_COMPILE_ONLY_STATIC --extra-arg=-march=haswell \
    --extra-arg=-idirafter "--extra-arg=$(c++ -print-file-name=include)" \
    "--extra-arg=-D__malloc__(...)=__malloc__" \
    2> >(grep -v -E '^[0-9]+ warnings? (generated|treated)' >&2)
