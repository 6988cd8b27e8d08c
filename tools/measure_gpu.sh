#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# measure_gpu.sh BIN OUT: everything that a GPU can say about rung, in one go: the ceilings, the
# tests of the device layer, every rung against the reference, the ladder timed beside cuBLAS, and
# compute-sanitizer over small problems. BIN is a build's bin folder (built with RUNG_CUDA=ON), OUT
# receives gemm.json (for results/<machine>/), machine.json and the logs. All steps run even if one
# fails; the exit status is the number of those that failed.
set -uo pipefail
bin=$1 out=$2
mkdir -p "$out"
failed=0

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
  printf '%-12s %4d s  exit %d\n' "$name" "$((SECONDS - begin))" "$status"
}

step machine "$bin/rung" machine --refresh
cp "${XDG_CACHE_HOME:-$HOME/.cache}/rung/machine.json" "$out/machine.json"
if [[ -x $bin/test_device ]]; then step device "$bin/test_device"; fi
step check "$bin/rung" check gemm --backend cuda
step bench "$bin/rung" bench gemm --backend cuda --output "$out/gemm.json"
step shapes "$bin/rung" bench gemm --backend cuda --rungs best,cublas --output "$out/gemm_shapes.json" \
  'f32 512x512x512' 'f32 1024x1024x1024' 'f32 2048x2048x2048' 'f32 4096x4096x4096' \
  'f32 8192x8192x8192' 'f32 4095x4097x4099' 'f32 16x16384x4096' 'f32 1x4096x4096' \
  'f32 64x64x65536' 'f32 4096x4096x4096,ta' 'f32 4096x4096x4096,tb'

if command -v compute-sanitizer >/dev/null; then
  # One ragged problem with every tile's edges, one of whole tiles.
  for tool in memcheck racecheck; do
    for problem in 'f32 129x257x131' 'f32 256x256x128' 'f32 96x80x72,tf32'; do
      step "$tool-${problem// /-}" compute-sanitizer --tool "$tool" --error-exitcode 9 \
        "$bin/rung" check gemm --backend cuda --problem "$problem" --variant plain
    done
  done
fi
exit "$failed"
