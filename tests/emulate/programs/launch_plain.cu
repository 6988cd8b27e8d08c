// SPDX-License-Identifier: Apache-2.0
// A kernel over a ragged array, launched the plain way.
#include "check.cuh"

__global__ void add(const float* a, const float* b, float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

int main() {
  Array<float> a(1000), b(1000), c(1000);
  for (int i = 0; i < 1000; ++i) a[i] = i, b[i] = 2 * i;
  a.up();
  b.up();
  add<<<(1000 + 127) / 128, 128>>>(a.device, b.device, c.device, 1000);
  CUDA(cudaGetLastError());
  c.down();
  for (int i = 0; i < 1000; ++i) CHECK(c[i] == 3 * i);
  return ok();
}
