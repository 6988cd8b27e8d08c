// SPDX-License-Identifier: Apache-2.0
// cudaMemset returns before it is done, and a non-blocking stream does not wait for it.
#include "../programs/check.cuh"

__global__ void count(int* bins, const int* values) {
  atomicAdd(&bins[values[threadIdx.x] % 4], 1);
}

int main() {
  Array<int> values(64);
  for (int i = 0; i < 64; ++i) values[i] = i;
  values.up();
  int* bins;
  CUDA(cudaMalloc(&bins, 4 * sizeof(int)));
  cudaStream_t stream;
#ifdef BUG
  CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
#else
  CUDA(cudaStreamCreate(&stream));
#endif
  CUDA(cudaMemset(bins, 0, 4 * sizeof(int)));        // expect: stream_order
  count<<<1, 64, 0, stream>>>(bins, values.device);  // expect: stream_order
  int sums[4];
  CUDA(cudaMemcpyAsync(sums, bins, sizeof sums, cudaMemcpyDeviceToHost, stream));
  CUDA(cudaStreamSynchronize(stream));
  CHECK(sums[0] == 16 && sums[3] == 16);
  CUDA(cudaStreamDestroy(stream));
  CUDA(cudaFree(bins));
  return ok();
}
