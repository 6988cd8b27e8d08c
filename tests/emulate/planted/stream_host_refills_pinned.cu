// SPDX-License-Identifier: Apache-2.0
// The host fills a buffer again while an asynchronous copy may still read it.
#include "../programs/check.cuh"

int main() {
  constexpr int n = 1024;
  Array<int> a(2 * n);
  int* pinned;
  cudaStream_t stream;
  CUDA(cudaStreamCreate(&stream));
  CUDA(cudaMallocHost(&pinned, n * sizeof(int)));
  for (int part = 0; part < 2; ++part) {
    for (int i = 0; i < n; ++i) pinned[i] = part * n + i;               // expect: stream_order
    CUDA(cudaMemcpyAsync(a.device + part * n, pinned, n * sizeof(int),  // expect: stream_order
                         cudaMemcpyHostToDevice, stream));
#ifndef BUG
    CUDA(cudaStreamSynchronize(stream));
#endif
  }
  CUDA(cudaStreamSynchronize(stream));
  a.down();
  CHECK(a[n] == n);
  CUDA(cudaFreeHost(pinned));
  CUDA(cudaStreamDestroy(stream));
  return ok();
}
