// SPDX-License-Identifier: Apache-2.0
// The host reads managed memory that a kernel may still write.
#include "../programs/check.cuh"

__global__ void square(float* p, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) p[i] = p[i] * p[i];
}

int main() {
  float* values;
  CUDA(cudaMallocManaged(&values, 100 * sizeof(float)));
  for (int i = 0; i < 100; ++i) values[i] = i;
  square<<<1, 32>>>(values, 100);  // expect: stream_order
#ifndef BUG
  CUDA(cudaDeviceSynchronize());
#endif
  const float last = values[99];  // expect: stream_order
  CHECK(last == 99 * 99);
  CUDA(cudaFree(values));
  return ok();
}
