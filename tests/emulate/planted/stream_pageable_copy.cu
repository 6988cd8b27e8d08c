// SPDX-License-Identifier: Apache-2.0
// A copy from pageable memory, and a kernel in a stream that does not wait for the default one.
#include "../programs/check.cuh"

__global__ void twice(int* p) { p[threadIdx.x + blockIdx.x * blockDim.x] *= 2; }

int main() {
  constexpr int n = 1 << 15;
  int* there;
  cudaStream_t stream;
  CUDA(cudaMalloc(&there, n * sizeof(int)));
  CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  int* here = new int[n];
  for (int i = 0; i < n; ++i) here[i] = i;
  CUDA(cudaMemcpy(there, here, n * sizeof(int), cudaMemcpyHostToDevice));  // expect: stream_order
#ifndef BUG
  CUDA(cudaStreamSynchronize(cudaStreamLegacy));
#endif
  twice<<<n / 256, 256, 0, stream>>>(there);  // expect: stream_order
  CUDA(cudaStreamSynchronize(stream));
  CUDA(cudaMemcpy(here, there, n * sizeof(int), cudaMemcpyDeviceToHost));
  CHECK(here[n - 1] == 2 * n - 2);
  delete[] here;
  CUDA(cudaStreamDestroy(stream));
  CUDA(cudaFree(there));
  return ok();
}
