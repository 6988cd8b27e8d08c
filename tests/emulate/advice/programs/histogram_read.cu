// SPDX-License-Identifier: Apache-2.0
// Shared bins that are read before all have counted.
#include "check.cuh"

__global__ void parity(const unsigned int* words, unsigned int* counts, int n) {
  __shared__ unsigned int bins[2];
  if (threadIdx.x < 2) bins[threadIdx.x] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    atomicAdd(&bins[__popc(words[i]) % 2], 1u);
  }
#ifndef BUG
  __syncthreads();
#endif
  if (threadIdx.x < 2) counts[threadIdx.x] = bins[threadIdx.x];
}

int main() {
  const int n = 300;
  Array<unsigned int> words(n), counts(2);
  unsigned int expected[2] = {};
  for (int i = 0; i < n; ++i) {
    words[i] = i * 2654435761u;
    ++expected[__builtin_popcount(words[i]) % 2];
  }
  words.up();
  parity<<<1, 96>>>(words.device, counts.device, n);
  counts.down();
  CHECK(counts[0] == expected[0] && counts[1] == expected[1]);
  return ok();
}
