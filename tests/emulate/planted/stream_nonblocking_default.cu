// SPDX-License-Identifier: Apache-2.0
// A kernel in the default stream does not wait for a non-blocking stream.
#include "../programs/check.cuh"

__global__ void make(int* p) { p[threadIdx.x] = 5; }
__global__ void use(const int* p, int* q) { q[threadIdx.x] = p[threadIdx.x]; }

int main() {
  Array<int> p(64), q(64);
  cudaStream_t stream;
#ifdef BUG
  CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
#else
  CUDA(cudaStreamCreate(&stream));
#endif
  make<<<1, 64, 0, stream>>>(p.device);  // expect: stream_order
  use<<<1, 64>>>(p.device, q.device);    // expect: stream_order
  CUDA(cudaDeviceSynchronize());
  q.down();
  CHECK(q[9] == 5);
  CUDA(cudaStreamDestroy(stream));
  return ok();
}
