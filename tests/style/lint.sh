#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# lint.sh TOOL BUILD JOBS [--all | FILE...]: clang-tidy over the library, the workbench and the program (or
# over the files given), and shellcheck over the scripts. Silent where all is well.
#
# clang-tidy takes several times what compiling takes. A source that it found clean is looked at again only when the
# source, a header that it includes, its compile command, .clang-tidy, the tool or this script is another
# (tests/style/clean.py). --all looks at all of them; either way, each source that passes is remembered.
set -euo pipefail
tool=$1 build=$2 jobs=$3
shift 3
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."

if command -v shellcheck >/dev/null; then shellcheck rung.sh .ci/run tests/style/lint.sh tools/*.sh; fi

# Peers' modules are other people's templates; tests are held to their compiler's warnings. cuBLAS's
# functions are kernels, compiled as g++ alone does.
all_sources() { find rung -name '*.cpp' -not -path '*/peers/*/*' -not -path '*/emulate/cublas/*' | sort; }

all=(--all)
if [[ $# -eq 0 ]]; then
  all=()
elif [[ $1 == --all ]]; then
  shift
fi

# As the library compiles them: tests compile some of them again for the simulated GPU, with options that clang
# does not know.
commands="$(mktemp -d)"
trap 'rm -rf -- "$commands"' EXIT
python3 - "$build/compile_commands.json" >"$commands/compile_commands.json" <<'PYTHON'
import json
import sys
json.dump([one for one in json.load(open(sys.argv[1])) if "-gstatement-frontiers" not in one["command"]], sys.stdout)
PYTHON
# Lines of a key and a source.
if [[ $# -gt 0 ]]; then printf '%s\n' "$@"; else all_sources; fi |
  python3 tests/style/clean.py sources . "$commands/compile_commands.json" "$tool" "${all[@]}" >"$commands/sources"
printf 'clang-tidy (%s) over %d files\n' "$tool" "$(wc -l <"$commands/sources")" >&2
cache="$(python3 tests/style/clean.py folder)"
# omp.h is taken from g++, which compiles rung, since clang's own is in a package apart; it uses an
# attribute with arguments that clang does not know.
# --quiet still counts suppressed warnings on stderr; those lines are dropped, all others kept.
# Highway's files are looked at for one instruction set instead of three.
# shellcheck disable=SC2016 # expanded by the inner shell: the command, then the key and the source that xargs adds
sed -E 's/^([^ ]+) (.*)$/\1\n\2/' "$commands/sources" | tr '\n' '\0' |
  CACHE="$cache" xargs -0 -r -n 2 -P "$jobs" bash -c '"${@:1:$#-2}" "${@: -1}" && : >"$CACHE/${@: -2:1}"' lint \
    "$tool" --quiet -p "$commands" --extra-arg=-Wno-unknown-warning-option \
    --extra-arg=-DHWY_COMPILE_ONLY_STATIC --extra-arg=-march=haswell \
    --extra-arg=-idirafter "--extra-arg=$(c++ -print-file-name=include)" \
    "--extra-arg=-D__malloc__(...)=__malloc__" \
    2> >(grep -v -E '^[0-9]+ warnings? (generated|treated)' >&2)
