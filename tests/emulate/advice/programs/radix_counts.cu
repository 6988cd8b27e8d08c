// SPDX-License-Identifier: Apache-2.0
// Digits that blocks count in shared bins.
#include "check.cuh"

__global__ void count(const unsigned* keys, unsigned* counts, int n, int shift) {
  __shared__ unsigned bins[16];
  for (int b = threadIdx.x; b < 16; b += blockDim.x) bins[b] = 0;
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    unsigned digit = (keys[i] >> shift) & 15;
#ifdef BUG
    bins[digit] = bins[digit] + 1;
#else
    atomicAdd(&bins[digit], 1u);
#endif
  }
  __syncthreads();
  for (int b = threadIdx.x; b < 16; b += blockDim.x) counts[b * gridDim.x + blockIdx.x] = bins[b];
}
int main() {
  Array<unsigned> keys(256), counts(64);
  unsigned e[16] = {}, g[16] = {};
  for (int i = 0; i < 256; ++i) ++e[(keys[i] = i * 977u) >> 4 & 15];
  keys.up();
  count<<<4, 64>>>(keys.device, counts.device, 256, 4);
  counts.down();
  for (int i = 0; i < 64; ++i) g[i / 4] += counts[i];
  for (int b = 0; b < 16; ++b) CHECK(g[b] == e[b]);
  return ok();
}
