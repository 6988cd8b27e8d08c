// SPDX-License-Identifier: Apache-2.0
// Lambdas of host and device as arguments of kernels.
#include "check.cuh"

template <class F>
__global__ void for_each(int n, F f) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) f(i);
}

int main() {
  Array<int> out(100);
  int* p = out.device;
  const int factor = 3;
  for_each<<<4, 32>>>(100, [=] __device__(int i) { p[i] = factor * i; });
  for_each<<<4, 32>>>(100, [p] __host__ __device__(int i) { p[i] += 1; });
  out.down();
  for (int i = 0; i < 100; ++i) CHECK(out[i] == 3 * i + 1);
  return ok();
}
