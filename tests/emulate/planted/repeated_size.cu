// SPDX-License-Identifier: Apache-2.0
// After many launches of which most ran unchecked, one with another size is checked.
#include "../programs/check.cuh"

__global__ void add(float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += 1;  // expect: out_of_bounds
}

int main() {
  record_first_launches(8);
  Array<float> x(100);
#ifdef BUG
  const int other = 101;
#else
  const int other = 99;
#endif
  for (int i = 0; i <= 500; ++i) add<<<4, 32>>>(x.device, i == 500 ? other : 100);
  x.down();
  CHECK(x[0] == 501);
  return ok();
}
