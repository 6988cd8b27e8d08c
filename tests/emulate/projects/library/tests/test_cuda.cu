// SPDX-License-Identifier: Apache-2.0
// Test that has a kernel of its own and calls the library.
#include <vector>

#include "vectors.h"

__global__ void square(int* p) { p[threadIdx.x] *= p[threadIdx.x]; }

int main() {
  int* p = nullptr;
  cudaMallocManaged(&p, 32 * sizeof(int));
  for (int i = 0; i < 32; ++i) p[i] = i;
  square<<<1, 32>>>(p);
  if (cudaDeviceSynchronize() != cudaSuccess || p[31] != 961) return 1;
  cudaFree(p);
  const std::vector<float> x(1000, 2.0f);
  return sum(1000, x.data()) == 2000.0f ? 0 : 2;
}
