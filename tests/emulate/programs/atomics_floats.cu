// SPDX-License-Identifier: Apache-2.0
// Floating-point atomics, and one made of compare-and-swap.
#include "check.cuh"

__device__ float atomicMaxFloat(float* address, float value) {
  int* bits = (int*)address;
  int old = *bits, assumed;
  do {
    assumed = old;
    old = atomicCAS(bits, assumed, __float_as_int(fmaxf(value, __int_as_float(assumed))));
  } while (assumed != old);
  return __int_as_float(old);
}

__global__ void change(float* f, double* d) {
  atomicAdd(&f[0], 0.5f);
  atomicAdd(d, 0.25);
  atomicMaxFloat(&f[1], static_cast<float>(threadIdx.x));
  atomicExch(&f[2], 3.5f);
}

int main() {
  Array<float> f(3);
  Array<double> d(1);
  change<<<3, 100>>>(f.device, d.device);
  f.down();
  d.down();
  CHECK(f[0] == 150 && d[0] == 75 && f[1] == 99 && f[2] == 3.5f);
  return ok();
}
