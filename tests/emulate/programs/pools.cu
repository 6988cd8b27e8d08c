// SPDX-License-Identifier: Apache-2.0
// Stream-ordered allocation and memory pools.
#include "check.cuh"

__global__ void fill(int* p, int v) { p[threadIdx.x] = v; }

int main() {
  cudaStream_t stream;
  CUDA(cudaStreamCreate(&stream));
  cudaMemPool_t pool;
  CUDA(cudaDeviceGetDefaultMemPool(&pool, 0));
  unsigned long long keep = 1 << 20;
  CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
  int back[32];
  for (int round = 0; round < 3; ++round) {
    int* p;
    CUDA(cudaMallocAsync(&p, sizeof back, stream));
    fill<<<1, 32, 0, stream>>>(p, round);
    CUDA(cudaMemcpyAsync(back, p, sizeof back, cudaMemcpyDeviceToHost, stream));
    CUDA(cudaFreeAsync(p, stream));
    CUDA(cudaStreamSynchronize(stream));
    CHECK(back[0] == round && back[31] == round);
  }
  CUDA(cudaStreamDestroy(stream));
  return ok();
}
