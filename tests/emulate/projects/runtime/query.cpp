// SPDX-License-Identifier: Apache-2.0
// C++ that asks for the device alone.
#include <cuda_runtime_api.h>

#include <cstdio>

int main() {
  int count = 0;
  cudaDeviceProp properties;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count != 1) return 1;
  if (cudaGetDeviceProperties(&properties, 0) != cudaSuccess) return 2;
  std::printf("%s\n", properties.name);
  return properties.warpSize == 32 ? 0 : 3;
}
