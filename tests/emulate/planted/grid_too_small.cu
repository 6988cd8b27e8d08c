// SPDX-License-Identifier: Apache-2.0
// A grid of n / 256 blocks: the last elements are admitted by the guard, and no thread is there.
#include "../programs/check.cuh"

__global__ void scale(float* out, const float* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2 * in[i];
}

int main() {
  const int n = 1000;
  Array<float> in(n);
  float* out = nullptr;
  CUDA(cudaMalloc(&out, n * sizeof(float)));
#ifdef BUG
  const int blocks = n / 256;
#else
  const int blocks = (n + 255) / 256;
#endif
  scale<<<blocks, 256>>>(out, in.device, n);  // expect: uninitialized
  CUDA(cudaMemcpy(in.host, out, n * sizeof(float), cudaMemcpyDeviceToHost));
  CUDA(cudaFree(out));
  return ok();
}
