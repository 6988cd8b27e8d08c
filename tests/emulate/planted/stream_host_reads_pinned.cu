// SPDX-License-Identifier: Apache-2.0
// The host reads what an asynchronous copy has yet to bring.
#include "../programs/check.cuh"

__global__ void make(int* p) { p[threadIdx.x] = threadIdx.x; }

int main() {
  Array<int> a(64);
  int* pinned;
  cudaStream_t stream;
  CUDA(cudaStreamCreate(&stream));
  CUDA(cudaMallocHost(&pinned, 64 * sizeof(int)));
  make<<<1, 64, 0, stream>>>(a.device);
  CUDA(cudaMemcpyAsync(pinned, a.device, 256, cudaMemcpyDefault, stream));  // expect: stream_order
#ifndef BUG
  CUDA(cudaStreamSynchronize(stream));
#endif
  int sum = 0;
  for (int i = 0; i < 64; ++i) sum += pinned[i];  // expect: stream_order
  CHECK(sum == 63 * 32);
  CUDA(cudaStreamSynchronize(stream));
  CUDA(cudaFreeHost(pinned));
  CUDA(cudaStreamDestroy(stream));
  return ok();
}
