// SPDX-License-Identifier: Apache-2.0
// C++ program; its makefile compiles it as CUDA.
#include <cuda_runtime.h>

#include <cstdio>

#include "affine.h"

int main() {
  int values[200], devices = 0;
  for (int i = 0; i < 200; ++i) values[i] = i;
  apply(values, 200);
  cudaGetDeviceCount(&devices);
  std::printf("%d %d\n", values[199], devices);
  return values[199] == 401 && devices == 1 ? 0 : 1;
}
