// SPDX-License-Identifier: Apache-2.0
// The macros that programs ask, pragmas among macros, and names that C++20 took for itself.
#include <math.h>

#include "check.cuh"

#if !defined(__DRIVER_TYPES_H__) || !defined(__CUDA_RUNTIME_H__)
#error "helpers ask by their guards which headers are there"
#endif
__host__ __device__ inline float lerp(float a, float b, float t) { return a + t * (b - a); }

#ifndef __CUDACC__
#error "this is CUDA"
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 600
#error "too old"
#endif
__host__ __device__ inline int where() {
#ifdef __CUDA_ARCH__
  return 1;
#else
  return 0;
#endif
}
__global__ void ask(int* out) {
  out[0] = where();
#if __CUDA_ARCH__ >= 700
  out[1] = 1;
#endif
  out[2] = CUDART_VERSION >= 11000;
}

int main() {
  Array<int> out(3);
  ask<<<1, 1>>>(out.device);
  out.down();
  int turns = 0;
#pragma GCC unroll 4
  for (int i = 0; i < 8; ++i) turns += i;
  CUDA(cudaGetLastError());
#pragma GCC diagnostic push
#pragma GCC diagnostic pop
  CHECK(turns == 28 && lerp(1.0f, 3.0f, 0.5f) == 2);
  CHECK(out[0] == 1 && out[1] == 1 && out[2] == 1);
  return ok();
}
