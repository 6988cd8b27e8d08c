// SPDX-License-Identifier: Apache-2.0
// Memory is freed in the order of another stream than that of its last use.
#include "../programs/check.cuh"

__global__ void make(int* p) { p[threadIdx.x] = threadIdx.x; }

int main() {
  cudaStream_t first, second;
  CUDA(cudaStreamCreate(&first));
  CUDA(cudaStreamCreate(&second));
  int* memory;
  CUDA(cudaMallocAsync(&memory, 64 * sizeof(int), first));
  make<<<1, 64, 0, first>>>(memory);  // expect: stream_order
#ifdef BUG
  CUDA(cudaFreeAsync(memory, second));  // expect: stream_order
#else
  CUDA(cudaFreeAsync(memory, first));
#endif
  CUDA(cudaDeviceSynchronize());
  CUDA(cudaStreamDestroy(first));
  CUDA(cudaStreamDestroy(second));
  return ok();
}
