// SPDX-License-Identifier: Apache-2.0
// Rows that device functions load and add up.
#include "check.cuh"

__device__ void load(float* tile, const float* from, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) tile[i] = from[i];
}
__device__ float total(const float* tile, int n) {
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += tile[i];
  return sum;
}
__global__ void rows(const float* m, float* out, int n) {
  __shared__ float tile[128];
  load(tile, m + blockIdx.x * n, n);
#ifndef BUG
  __syncthreads();
#endif
  float sum = total(tile, n);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
int main() {
  Array<float> m(3 * 128), out(3);
  for (int i = 0; i < m.size; ++i) m[i] = i % 7;
  m.up();
  rows<<<3, 64>>>(m.device, out.device, 128);
  out.down();
  for (int r = 0; r < 3; ++r) {
    float s = 0;
    for (int i = 0; i < 128; ++i) s += m[r * 128 + i];
    CHECK(out[r] == s);
  }
  return ok();
}
