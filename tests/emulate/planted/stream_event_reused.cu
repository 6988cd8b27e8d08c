// SPDX-License-Identifier: Apache-2.0
// An event is recorded behind the work that it stands for; an earlier record of it is no wait for
// later work.
#include "../programs/check.cuh"

__global__ void make(int* p, int v) { p[threadIdx.x] = v; }
__global__ void use(const int* p, int* q) { q[threadIdx.x] = p[threadIdx.x]; }

int main() {
  Array<int> p(64), q(64);
  cudaStream_t one, two;
  cudaEvent_t made;
  CUDA(cudaStreamCreate(&one));
  CUDA(cudaStreamCreate(&two));
  CUDA(cudaEventCreateWithFlags(&made, cudaEventDisableTiming));
  make<<<1, 64, 0, one>>>(p.device, 1);
  CUDA(cudaEventRecord(made, one));
  CUDA(cudaStreamWaitEvent(two, made, 0));
  use<<<1, 64, 0, two>>>(p.device, q.device);  // expect: stream_order
#ifndef BUG
  CUDA(cudaEventRecord(made, two));
  CUDA(cudaStreamWaitEvent(one, made, 0));
#endif
  make<<<1, 64, 0, one>>>(p.device, 2);  // expect: stream_order
  CUDA(cudaDeviceSynchronize());
  q.down();
  CHECK(q[5] == 1);
  CUDA(cudaEventDestroy(made));
  CUDA(cudaStreamDestroy(one));
  CUDA(cudaStreamDestroy(two));
  return ok();
}
