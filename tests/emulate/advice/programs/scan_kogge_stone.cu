// SPDX-License-Identifier: Apache-2.0
// An inclusive scan with one barrier a step, where two are needed.
#include "check.cuh"

__global__ void scan(int* values) {
  __shared__ int s[128];
  int t = threadIdx.x;
  s[t] = values[t];
  for (int offset = 1; offset < 128; offset <<= 1) {
    __syncthreads();
#ifdef BUG
    if (t >= offset) s[t] += s[t - offset];
#else
    int left = t >= offset ? s[t - offset] : 0;
    __syncthreads();
    s[t] += left;
#endif
  }
  __syncthreads();
  values[t] = s[t];
}

int main() {
  Array<int> values(128);
  for (int i = 0; i < 128; ++i) values[i] = i % 5;
  values.up();
  scan<<<1, 128>>>(values.device);
  values.down();
  for (int i = 0, sum = 0; i < 128; ++i) {
    sum += i % 5;
    CHECK(values[i] == sum);
  }
  return ok();
}
