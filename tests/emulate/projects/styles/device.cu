// SPDX-License-Identifier: Apache-2.0
// Kernel that uses a device function of a library.
#include <cstdio>

#include "affine.h"

extern __device__ int twice(int);

__global__ void answer(int* value) { *value = twice(21); }

int main() {
  int *device, value = 0, pair[] = {1, 2};
  cudaMalloc(&device, sizeof value);
  answer<<<1, 1>>>(device);
  cudaMemcpy(&value, device, sizeof value, cudaMemcpyDeviceToHost);
  cudaFree(device);
  apply(pair, 2);
  std::printf("%d %d\n", value, pair[1]);
  return value == 42 && pair[1] == 7 ? 0 : 1;
}
