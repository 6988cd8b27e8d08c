// SPDX-License-Identifier: Apache-2.0
// An allocation and both copies whose sizes count elements.
#include "check.cuh"

__global__ void twice(const int* in, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2 * in[i];
}

int main() {
  const int n = 1000;
  int host[n], result[n] = {};
  for (int i = 0; i < n; ++i) host[i] = 1 + i % 17;
  int *in = nullptr, *out = nullptr;
  cudaMalloc(&in, n * sizeof(int));
#ifdef BUG
  cudaMalloc(&out, n);
  cudaMemcpy(in, host, n, cudaMemcpyHostToDevice);
#else
  cudaMalloc(&out, n * sizeof(int));
  cudaMemcpy(in, host, n * sizeof(int), cudaMemcpyHostToDevice);
#endif
  twice<<<4, 256>>>(in, out, n);
#ifdef BUG
  cudaMemcpy(result, out, n, cudaMemcpyDeviceToHost);
#else
  cudaMemcpy(result, out, n * sizeof(int), cudaMemcpyDeviceToHost);
#endif
  for (int i = 0; i < n; ++i) CHECK(result[i] == 2 * host[i]);
  cudaFree(in);
  cudaFree(out);
  return ok();
}
