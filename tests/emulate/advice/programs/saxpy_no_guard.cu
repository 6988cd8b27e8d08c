// SPDX-License-Identifier: Apache-2.0
// saxpy without the guard of its last block.
#include "check.cuh"

__global__ void saxpy(int n, float a, const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef BUG
  y[i] = a * x[i] + y[i];
#else
  if (i < n) y[i] = a * x[i] + y[i];
#endif
}

int main() {
  const int n = 1000;
  Array<float> x(n), y(n);
  for (int i = 0; i < n; ++i) x[i] = i, y[i] = 1;
  x.up(), y.up();
  saxpy<<<(n + 127) / 128, 128>>>(n, 2, x.device, y.device);
  y.down();
  for (int i = 0; i < n; ++i) CHECK(y[i] == 2 * i + 1);
  return ok();
}
