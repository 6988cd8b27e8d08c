// SPDX-License-Identifier: Apache-2.0
// One stream writes what another one reads, without an event between them.
#include "../programs/check.cuh"

__global__ void make(int* p) { p[threadIdx.x] = threadIdx.x; }
__global__ void use(int* to, const int* from) { to[threadIdx.x] = from[threadIdx.x] + 1; }

int main() {
  Array<int> a(64), b(64);
  cudaStream_t first, second;
  cudaEvent_t made;
  CUDA(cudaStreamCreate(&first));
  CUDA(cudaStreamCreate(&second));
  CUDA(cudaEventCreateWithFlags(&made, cudaEventDisableTiming));
  make<<<1, 64, 0, first>>>(a.device);  // expect: stream_order
  CUDA(cudaEventRecord(made, first));
#ifndef BUG
  CUDA(cudaStreamWaitEvent(second, made, 0));
#endif
  use<<<1, 64, 0, second>>>(b.device, a.device);  // expect: stream_order
  b.down();
  CHECK(b[63] == 64);
  CUDA(cudaEventDestroy(made));
  CUDA(cudaStreamDestroy(first));
  CUDA(cudaStreamDestroy(second));
  return ok();
}
