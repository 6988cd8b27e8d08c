// SPDX-License-Identifier: Apache-2.0
// The host reads mapped memory behind a wait for the stream that writes it, not behind a query.
#include "../programs/check.cuh"

__global__ void fill(int* p) { p[blockIdx.x * blockDim.x + threadIdx.x] = 7; }

int main() {
  int* flags;
  int* mapped;
  cudaStream_t stream;
  CUDA(cudaStreamCreate(&stream));
  CUDA(cudaHostAlloc(&flags, 256 * sizeof(int), cudaHostAllocMapped));
  CUDA(cudaHostGetDevicePointer(&mapped, flags, 0));
  fill<<<1, 256, 0, stream>>>(mapped);  // expect: stream_order
#ifdef BUG
  cudaStreamQuery(stream);
#else
  while (cudaStreamQuery(stream) == cudaErrorNotReady) {
  }
#endif
  int sum = 0;
  for (int i = 0; i < 256; ++i) sum += flags[i];  // expect: stream_order
  CHECK(sum == 7 * 256);
  CUDA(cudaStreamSynchronize(stream));
  CUDA(cudaFreeHost(flags));
  CUDA(cudaStreamDestroy(stream));
  return ok();
}
