// SPDX-License-Identifier: Apache-2.0
// cudaMemcpy waits for the default stream, not for a non-blocking one.
#include "../programs/check.cuh"

__global__ void make(int* p) { p[threadIdx.x] = threadIdx.x; }

int main() {
  Array<int> a(64);
  cudaStream_t stream;
  CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  make<<<1, 64, 0, stream>>>(a.device);  // expect: stream_order
#ifndef BUG
  CUDA(cudaStreamSynchronize(stream));
#endif
  CUDA(cudaMemcpy(a.host, a.device, 256, cudaMemcpyDeviceToHost));  // expect: stream_order
  CHECK(a[63] == 63);
  CUDA(cudaStreamDestroy(stream));
  return ok();
}
