// SPDX-License-Identifier: Apache-2.0
// Memory is allocated in the order of one stream, and used in another that does not wait for it.
#include "../programs/check.cuh"

__global__ void make(int* p) { p[threadIdx.x] = threadIdx.x; }

int main() {
  cudaStream_t first, second;
  cudaEvent_t there;
  CUDA(cudaStreamCreate(&first));
  CUDA(cudaStreamCreate(&second));
  CUDA(cudaEventCreate(&there));
  int* memory;
  CUDA(cudaMallocAsync(&memory, 64 * sizeof(int), first));  // expect: stream_order
  CUDA(cudaEventRecord(there, first));
#ifndef BUG
  CUDA(cudaStreamWaitEvent(second, there));
#endif
  make<<<1, 64, 0, second>>>(memory);  // expect: stream_order
  CUDA(cudaFreeAsync(memory, second));
  CUDA(cudaDeviceSynchronize());
  CUDA(cudaEventDestroy(there));
  CUDA(cudaStreamDestroy(first));
  CUDA(cudaStreamDestroy(second));
  return ok();
}
