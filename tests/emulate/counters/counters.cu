// SPDX-License-Identifier: Apache-2.0
// Kernels that are held against a chip's counters: `nvcc counters.cu` makes the program for
// Nsight Compute, `rung emulate --json` that for the simulated GPU (tools/compare_counters.py runs
// both; docs/counters-against-hardware.md has the table). The kernels say how wide each access is,
// and leave nothing to merge, so that both compilers make the same requests of them.
#include "banks.cuh"
#include "buffers.cuh"
#include "copies.cuh"
#include "reductions.cuh"
#include "transposes.cuh"

int main() {
  const Buffers buffers = make_buffers();
  run_copies(buffers);
  run_transposes(buffers);
  run_banks(buffers);
  run_reductions(buffers);
  free_buffers(buffers);
}
