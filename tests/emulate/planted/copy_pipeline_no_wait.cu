// SPDX-License-Identifier: Apache-2.0
// A stage of a pipeline is waited for before it is read; a barrier of the block is no wait.
#include <cuda/pipeline>

#include "../programs/check.cuh"

__global__ void sums(const int* in, int* out, int tiles) {
  __shared__ alignas(16) int kept[2][64];
  auto pipeline = cuda::make_pipeline();
  const int t = threadIdx.x;
  int sum = 0;
  for (int i = 0; i < tiles; ++i) {
    pipeline.producer_acquire();
    cuda::memcpy_async(&kept[i % 2][t], in + 64 * i + t, sizeof(int), pipeline);  // expect: race
    pipeline.producer_commit();
#ifndef BUG
    pipeline.consumer_wait();
#endif
    __syncthreads();
    sum += kept[i % 2][63 - t];  // expect: race
    pipeline.consumer_release();
  }
  out[t] = sum;
}

int main() {
  Array<int> in(128), out(64);
  sums<<<1, 64>>>(in.device, out.device, 2);
  return ok();
}
