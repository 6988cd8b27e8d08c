// SPDX-License-Identifier: Apache-2.0
// Copies in every direction, and by cudaMemcpyDefault.
#include "check.cuh"

int main() {
  int a[64], b[64] = {};
  for (int i = 0; i < 64; ++i) a[i] = i * i;
  int *x, *y;
  CUDA(cudaMalloc(&x, sizeof a));
  CUDA(cudaMalloc((void**)&y, sizeof a));
  CUDA(cudaMemcpy(x, a, sizeof a, cudaMemcpyHostToDevice));
  CUDA(cudaMemcpy(y, x, sizeof a, cudaMemcpyDeviceToDevice));
  CUDA(cudaMemcpy(b, y, sizeof a, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 64; ++i) CHECK(b[i] == i * i);
  int c[64] = {};
  CUDA(cudaMemcpy(c, b, sizeof b, cudaMemcpyHostToHost));
  CHECK(c[63] == 63 * 63);
  CUDA(cudaMemset(y, 0, sizeof a));
  CUDA(cudaMemcpy(y + 8, x, 32, cudaMemcpyDefault));
  CUDA(cudaMemcpy(b, y, sizeof b, cudaMemcpyDefault));
  CHECK(b[7] == 0 && b[8] == 0 && b[15] == 49 && b[16] == 0);
  CUDA(cudaFree(x));
  CUDA(cudaFree(y));
  CUDA(cudaFree(nullptr));
  return ok();
}
