// SPDX-License-Identifier: Apache-2.0
// Kernels that take lambdas, function objects and device function pointers.
#include "check.cuh"

template <class F>
__global__ void apply(int* p, int n, F f) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] = f(i);
}
struct Affine {
  int a, b;
  __host__ __device__ int operator()(int x) const { return a * x + b; }
};
typedef int (*Operation)(int);
__device__ int square(int x) { return x * x; }
__device__ Operation table[] = {square};
__global__ void by_pointer(int* p) { p[threadIdx.x] = table[0](threadIdx.x); }

int main() {
  Array<int> data(40);
  apply<<<2, 32>>>(data.device, 40, Affine{3, 1});
  data.down();
  CHECK(data[39] == 118);
  by_pointer<<<1, 40>>>(data.device);
  data.down();
  CHECK(data[39] == 39 * 39);
  return ok();
}
