// SPDX-License-Identifier: Apache-2.0
// A grid larger than the data.
#include "../programs/check.cuh"

__global__ void twice(float* data, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef BUG
  (void)n;
#else
  if (i >= n) return;
#endif
  data[i] *= 2;  // expect: out_of_bounds
}

int main() {
  Array<float> data(70);
  twice<<<3, 32>>>(data.device, 70);
  return ok();
}
