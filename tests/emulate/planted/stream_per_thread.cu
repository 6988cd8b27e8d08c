// SPDX-License-Identifier: Apache-2.0
// The thread's default stream and another one.
#include "../programs/check.cuh"

__global__ void make(int* p) { p[threadIdx.x] = threadIdx.x; }
__global__ void use(int* to, const int* from) { to[threadIdx.x] = from[threadIdx.x] + 1; }

int main() {
  Array<int> a(64), b(64);
  cudaStream_t stream;
  CUDA(cudaStreamCreate(&stream));
  make<<<1, 64, 0, cudaStreamPerThread>>>(a.device);  // expect: stream_order
#ifndef BUG
  CUDA(cudaStreamSynchronize(cudaStreamPerThread));
#endif
  use<<<1, 64, 0, stream>>>(b.device, a.device);  // expect: stream_order
  b.down();
  CHECK(b[63] == 64);
  CUDA(cudaStreamDestroy(stream));
  return ok();
}
