// SPDX-License-Identifier: Apache-2.0
// Two buffers in turn: the copy into one does not wait for the kernel that reads it.
#include "../programs/check.cuh"

__global__ void add(int* sum, const int* p) { atomicAdd(sum, p[threadIdx.x]); }

int main() {
  constexpr int n = 64, rounds = 6;
  Array<int> sum(1), buffers(2 * n);
  int* pinned;
  CUDA(cudaMallocHost(&pinned, rounds * n * sizeof(int)));
  for (int i = 0; i < rounds * n; ++i) pinned[i] = 1;
  cudaStream_t copies, kernels;
  cudaEvent_t filled[2], emptied[2];
  CUDA(cudaStreamCreate(&copies));
  CUDA(cudaStreamCreate(&kernels));
  for (int i = 0; i < 2; ++i) {
    CUDA(cudaEventCreate(&filled[i]));
    CUDA(cudaEventCreate(&emptied[i]));
  }
  for (int i = 0; i < rounds; ++i) {
    int* const buffer = buffers.device + i % 2 * n;
#ifndef BUG
    CUDA(cudaStreamWaitEvent(copies, emptied[i % 2], 0));  // at first it has not been recorded
#endif
    CUDA(cudaMemcpyAsync(buffer, pinned + i * n, n * sizeof(int),  // expect: stream_order
                         cudaMemcpyHostToDevice, copies));
    CUDA(cudaEventRecord(filled[i % 2], copies));
    CUDA(cudaStreamWaitEvent(kernels, filled[i % 2], 0));
    add<<<1, n, 0, kernels>>>(sum.device, buffer);  // expect: stream_order
    CUDA(cudaEventRecord(emptied[i % 2], kernels));
  }
  sum.down();
  CHECK(sum[0] == rounds * n);
  for (int i = 0; i < 2; ++i) {
    CUDA(cudaEventDestroy(filled[i]));
    CUDA(cudaEventDestroy(emptied[i]));
  }
  CUDA(cudaStreamDestroy(copies));
  CUDA(cudaStreamDestroy(kernels));
  CUDA(cudaFreeHost(pinned));
  return ok();
}
