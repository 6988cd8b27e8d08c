// SPDX-License-Identifier: Apache-2.0
// Memory of the host is freed while a copy may still read it.
#include "../programs/check.cuh"

int main() {
  Array<int> a(64);
  int* pinned;
  cudaStream_t stream;
  CUDA(cudaStreamCreate(&stream));
  CUDA(cudaMallocHost(&pinned, 64 * sizeof(int)));
  for (int i = 0; i < 64; ++i) pinned[i] = i;
  CUDA(cudaMemcpyAsync(a.device, pinned, 256, cudaMemcpyDefault, stream));  // expect: stream_order
#ifndef BUG
  CUDA(cudaStreamSynchronize(stream));
#endif
  CUDA(cudaFreeHost(pinned));  // expect: stream_order
  a.down();
  CHECK(a[63] == 63);
  CUDA(cudaStreamDestroy(stream));
  return ok();
}
