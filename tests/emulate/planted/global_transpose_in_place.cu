// SPDX-License-Identifier: Apache-2.0
// Of a square each pair is exchanged by one thread.
#include "../programs/check.cuh"

__global__ void transpose(float* a, int n) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
#ifdef BUG
  const float other = a[x * n + y];  // expect: race
  a[y * n + x] = other;              // expect: race
#else
  if (x < y) {
    const float one = a[y * n + x];
    a[y * n + x] = a[x * n + y];
    a[x * n + y] = one;
  }
#endif
}

int main() {
  Array<float> a(1024);
  for (int i = 0; i < 1024; ++i) a[i] = static_cast<float>(i);
  a.up();
  transpose<<<dim3(2, 2), dim3(16, 16)>>>(a.device, 32);
  return ok();
}
