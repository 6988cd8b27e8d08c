// SPDX-License-Identifier: Apache-2.0
// A scan over many blocks in one pass: each waits for the sum of those before it.
#include "check.cuh"

__global__ void scan(const int* in, int* out, volatile int* sums, int* ready) {
  __shared__ int part[64];
  __shared__ int before;
  const int t = threadIdx.x, b = blockIdx.x;
  part[t] = in[64 * b + t];
  __syncthreads();
  for (int step = 1; step < 64; step *= 2) {
    const int left = t >= step ? part[t - step] : 0;
    __syncthreads();
    part[t] += left;
    __syncthreads();
  }
  if (t == 0) {
    before = 0;
    if (b > 0) {
      while (atomicAdd(&ready[b - 1], 0) == 0) {
      }
      __threadfence();
      before = sums[b - 1];
    }
    sums[b] = before + part[63];
    __threadfence();
    atomicExch(&ready[b], 1);
  }
  __syncthreads();
  out[64 * b + t] = before + part[t];
}

int main() {
  Array<int> in(512), out(512), sums(8), ready(8);
  for (int i = 0; i < 512; ++i) in[i] = i % 11;
  in.up();
  scan<<<8, 64>>>(in.device, out.device, sums.device, ready.device);
  out.down();
  int sum = 0;
  for (int i = 0; i < 512; ++i) CHECK(out[i] == (sum += in[i]));
  return ok();
}
