// SPDX-License-Identifier: Apache-2.0
// A stream waits for an event that nobody records.
#include "../programs/check.cuh"

__global__ void make(int* p) { p[threadIdx.x] = threadIdx.x; }

int main() {
  Array<int> a(64), b(64);
  cudaStream_t first, second;
  cudaEvent_t made;
  CUDA(cudaStreamCreate(&first));
  CUDA(cudaStreamCreate(&second));
  CUDA(cudaEventCreateWithFlags(&made, cudaEventDisableTiming));
  make<<<1, 64, 0, first>>>(a.device);
#ifndef BUG
  CUDA(cudaEventRecord(made, first));
#endif
  CUDA(cudaStreamWaitEvent(second, made, 0));  // expect: stream_order
  make<<<1, 64, 0, second>>>(b.device);
  b.down();
  CHECK(b[63] == 63);
  CUDA(cudaEventDestroy(made));
  CUDA(cudaStreamDestroy(first));
  CUDA(cudaStreamDestroy(second));
  return ok();
}
