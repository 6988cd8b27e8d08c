// SPDX-License-Identifier: Apache-2.0
// A grid-stride loop that goes one too far.
#include "check.cuh"

__global__ void square(float* v, int count) {
#ifdef BUG
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i <= count; i += blockDim.x * gridDim.x) {
#else
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += blockDim.x * gridDim.x) {
#endif
    v[i] = v[i] * v[i];
  }
}

int main() {
  const int count = 700;
  Array<float> v(count);
  for (int i = 0; i < count; ++i) v[i] = i % 50;
  v.up();
  square<<<2, 64>>>(v.device, count);
  v.down();
  for (int i = 0; i < count; ++i) CHECK(v[i] == (i % 50) * (i % 50));
  return ok();
}
