// SPDX-License-Identifier: Apache-2.0
// The place of a maximum, by halves.
#include "check.cuh"

__global__ void argmax(const float* v, int* where) {
  __shared__ float best[64];
  __shared__ int index[64];
  int t = threadIdx.x;
  best[t] = v[t];
  index[t] = t;
  __syncthreads();
  for (int half = 32; half >= 1; half /= 2) {
    if (t < half && best[t + half] > best[t]) {
      best[t] = best[t + half];
      index[t] = index[t + half];
    }
#ifndef BUG
    __syncthreads();
#endif
  }
  if (t == 0) where[0] = index[0];
}
int main() {
  Array<float> v(64);
  Array<int> where(1);
  for (int i = 0; i < 64; ++i) v[i] = i * 29 % 64;
  v.up();
  argmax<<<1, 64>>>(v.device, where.device);
  where.down();
  for (int i = 0; i < 64; ++i) CHECK(v[i] <= v[where[0]]);
  return ok();
}
