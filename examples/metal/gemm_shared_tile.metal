// SPDX-License-Identifier: Apache-2.0
// C = A B with tiles in threadgroup memory: gemm / shared tile, for contiguous matrices. The CUDA
// and OpenCL versions are rung/ops/gemm/cuda/030_shared_tile.cu and .../opencl/030_shared_tile.cl.
#include <metal_stdlib>

using namespace metal;

constant constexpr uint tile = 16;  // 256 threads per threadgroup, which every Apple GPU allows

struct Sizes {
  uint m, n, k;  // A is m x k, B is k x n, C is m x n
};

kernel void gemm_shared_tile(device const float* a [[buffer(0)]],
                             device const float* b [[buffer(1)]],
                             device float* c [[buffer(2)]], constant Sizes& size [[buffer(3)]],
                             uint2 thread [[thread_position_in_threadgroup]],
                             uint2 group [[threadgroup_position_in_grid]]) {
  threadgroup float a_tile[tile][tile];
  threadgroup float b_tile[tile][tile];
  const uint row = group.y * tile + thread.y;
  const uint column = group.x * tile + thread.x;
  float sum = 0;
  for (uint first = 0; first < size.k; first += tile) {
    const uint a_column = first + thread.x;
    const uint b_row = first + thread.y;
    a_tile[thread.y][thread.x] =
        row < size.m && a_column < size.k ? a[row * size.k + a_column] : 0.0f;
    b_tile[thread.y][thread.x] =
        b_row < size.k && column < size.n ? b[b_row * size.n + column] : 0.0f;
    threadgroup_barrier(mem_flags::mem_threadgroup);  // the tiles are complete
    for (uint step = 0; step < tile; ++step) {
      sum += a_tile[thread.y][step] * b_tile[step][thread.x];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);  // before the next tile overwrites them
  }
  if (row < size.m && column < size.n) c[row * size.n + column] = sum;
}
