// SPDX-License-Identifier: Apache-2.0
// Kernels that are declared before they are defined: with other names of parameters and a default,
// or with other parameters, which is another function that nobody defines.
#include "check.cuh"

__global__ void fill(int* to, int value, int n = 64);
__global__ void add(int* to, int n);

__global__ void fill(int* values, int with, int count) {
  const int i = static_cast<int>(threadIdx.x + blockIdx.x * blockDim.x);
  if (i < count) values[i] = with;
}
__global__ void add(int* to, int amount, int n) {
  const int i = static_cast<int>(threadIdx.x + blockIdx.x * blockDim.x);
  if (i < n) to[i] += amount;
}

int main() {
  Array<int> values(64);
  fill<<<2, 32>>>(values.device, 5);
  add<<<2, 32>>>(values.device, 3, 64);
  values.down();
  for (int i = 0; i < 64; ++i) CHECK(values[i] == 8);
  return ok();
}
