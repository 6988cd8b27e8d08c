// SPDX-License-Identifier: Apache-2.0
// Operations made of compare-and-swap, as CUDA's manual has them.
#include "check.cuh"

__device__ float atomic_multiply(float* address, float factor) {
  int* bits = reinterpret_cast<int*>(address);
  int old = *bits, assumed;
  do {
    assumed = old;
    old = atomicCAS(bits, assumed, __float_as_int(__int_as_float(assumed) * factor));
  } while (assumed != old);
  return __int_as_float(old);
}
__device__ double atomic_least(double* address, double value) {
  auto* bits = reinterpret_cast<unsigned long long*>(address);
  unsigned long long old = *bits, assumed;
  do {
    assumed = old;
    old =
        atomicCAS(bits, assumed, __double_as_longlong(fmin(value, __longlong_as_double(assumed))));
  } while (assumed != old);
  return __longlong_as_double(old);
}
__global__ void change(float* product, double* least) {
  atomic_multiply(product, threadIdx.x % 32 == 0 ? 2.0f : 1.0f);
  atomic_least(least, 500.0 - (blockIdx.x * blockDim.x + threadIdx.x));
}

int main() {
  Array<float> product(1);
  Array<double> least(1);
  product[0] = 1;
  least[0] = 1e9;
  product.up();
  least.up();
  change<<<2, 64>>>(product.device, least.device);
  product.down();
  least.down();
  CHECK(product[0] == 16 && least[0] == 500 - 127);
  return ok();
}
