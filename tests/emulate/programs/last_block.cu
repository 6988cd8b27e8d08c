// SPDX-License-Identifier: Apache-2.0
// The last block to finish adds up what the others left, by a ticket and fences.
#include "check.cuh"

__device__ unsigned tickets = 0;

__global__ void sum(const int* in, volatile int* partial, int* out) {
  __shared__ int kept[64];
  __shared__ bool last;
  const int t = threadIdx.x;
  kept[t] = in[blockIdx.x * 64 + t];
  __syncthreads();
  for (int stride = 32; stride > 0; stride >>= 1) {
    if (t < stride) kept[t] += kept[t + stride];
    __syncthreads();
  }
  if (t == 0) {
    partial[blockIdx.x] = kept[0];
    __threadfence();
    last = atomicInc(&tickets, gridDim.x) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && t == 0) {
    int total = 0;
    for (unsigned i = 0; i < gridDim.x; ++i) total += partial[i];
    *out = total;
    tickets = 0;
  }
}

int main() {
  Array<int> in(640), partial(10), out(1);
  int expected = 0;
  for (int i = 0; i < 640; ++i) expected += in[i] = i % 13;
  in.up();
  sum<<<10, 64>>>(in.device, partial.device, out.device);
  out.down();
  CHECK(out[0] == expected);
  return ok();
}
