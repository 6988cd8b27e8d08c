// SPDX-License-Identifier: Apache-2.0
// cudaFree does not wait for work that uses memory of a pool.
#include "../programs/check.cuh"

__global__ void make(int* p) { p[threadIdx.x] = threadIdx.x; }

int main() {
  cudaStream_t stream;
  CUDA(cudaStreamCreate(&stream));
  int* memory;
  CUDA(cudaMallocAsync(&memory, 64 * sizeof(int), stream));
  make<<<1, 64, 0, stream>>>(memory);  // expect: stream_order
#ifndef BUG
  CUDA(cudaStreamSynchronize(stream));
#endif
  CUDA(cudaFree(memory));  // expect: stream_order
  CUDA(cudaStreamDestroy(stream));
  return ok();
}
