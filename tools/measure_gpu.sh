#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# measure_gpu.sh BIN OUT [OPERATOR...]: everything that a GPU can say about rung, in one go: the
# ceilings, the tests of the device layer, and for each operator (all, when none is named) every rung
# against the reference, the ladder timed beside its peers, three seeds of random problems, and
# compute-sanitizer over the problems of the check. BIN is a build's bin folder (built with
# RUNG_CUDA=ON); OUT receives <operator>.json and <operator>_survey.json (for results/<machine>/),
# machine.json and the logs. All steps run even if one fails; the exit status is the number of those
# that failed.
set -uo pipefail
bin=$1 out=$2
shift 2
mkdir -p "$out"
failed=0
operators=("$@")
if [[ ${#operators[@]} -eq 0 ]]; then
  mapfile -t operators < <("$bin/rung" list --json | python3 -c \
    'import json, sys; print("\n".join(sorted({rung["op"] for rung in json.load(sys.stdin)})))')
fi

# step NAME COMMAND...
step() {
  local name=$1 begin=$SECONDS
  shift
  "$@" >"$out/$name.log" 2>&1
  local status=$?
  if [[ $status -ne 0 ]]; then
    failed=$((failed + 1))
    tail -n 15 "$out/$name.log"
  fi
  printf '%-24s %4d s  exit %d\n' "$name" "$((SECONDS - begin))" "$status"
}

step machine "$bin/rung" machine --refresh
cp "${XDG_CACHE_HOME:-$HOME/.cache}/rung/machine.json" "$out/machine.json"
if [[ -x $bin/test_device ]]; then step device "$bin/test_device"; fi
for operator in "${operators[@]}"; do
  step "check-$operator" "$bin/rung" check "$operator" --backend cuda
  step "bench-$operator" "$bin/rung" bench "$operator" --backend cuda --output "$out/$operator.json"
  "$bin/rung" survey "$operator" --list --count 1 >/dev/null 2>&1 || continue  # it declares no patterns
  for seed in 1 2 3; do
    step "survey-$operator-$seed" "$bin/rung" survey "$operator" --backend cuda --max-bytes 2G --seed $seed \
      --json "$out/${operator}_survey.json"
  done
done
if [[ " ${operators[*]} " == *' gemm '* ]]; then
  step gemm-shapes "$bin/rung" bench gemm --backend cuda --rungs best,cublas \
    --output "$out/gemm_shapes.json" \
    'f32 512x512x512' 'f32 1024x1024x1024' 'f32 2048x2048x2048' 'f32 4096x4096x4096' \
    'f32 8192x8192x8192' 'f32 4095x4097x4099' 'f32 16x16384x4096' 'f32 1x4096x4096' \
    'f32 64x64x65536' 'f32 4096x4096x4096,ta' 'f32 4096x4096x4096,tb'
fi

# Last, and each within bounds: the tools run kernels a hundred times slower.
if command -v compute-sanitizer >/dev/null; then
  for operator in "${operators[@]}"; do
    for tool in memcheck racecheck; do
      step "$tool-$operator" timeout 120 compute-sanitizer --tool "$tool" --error-exitcode 9 \
        "$bin/rung" check "$operator" --backend cuda --variant plain
    done
  done
fi
exit "$failed"
