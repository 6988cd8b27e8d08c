// SPDX-License-Identifier: Apache-2.0
// A constant is set in one stream and read by a kernel in another.
#include "../programs/check.cuh"

__constant__ int factor;
__global__ void scale(int* p) { p[threadIdx.x] = factor * threadIdx.x; }

int main() {
  Array<int> a(64);
  cudaStream_t first, second;
  CUDA(cudaStreamCreate(&first));
  CUDA(cudaStreamCreate(&second));
  const int three = 3;
  constexpr cudaMemcpyKind to_device = cudaMemcpyHostToDevice;
#ifdef BUG
  CUDA(cudaMemcpyToSymbolAsync(factor, &three, 4, 0, to_device, first));  // expect: stream_order
#else
  CUDA(cudaMemcpyToSymbolAsync(factor, &three, 4, 0, to_device, second));
#endif
  scale<<<1, 64, 0, second>>>(a.device);  // expect: stream_order
  a.down();
  CHECK(a[63] == 189);
  CUDA(cudaStreamDestroy(first));
  CUDA(cudaStreamDestroy(second));
  return ok();
}
