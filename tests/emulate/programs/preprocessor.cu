// SPDX-License-Identifier: Apache-2.0
// The macros that programs ask.
#include "check.cuh"

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
  CHECK(out[0] == 1 && out[1] == 1 && out[2] == 1);
  return ok();
}
