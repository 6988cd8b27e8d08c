// SPDX-License-Identifier: Apache-2.0
// Two sums in one reduction.
#include "check.cuh"

__global__ void variance(const float* x, float* mean, float* var, int n) {
  __shared__ float s1[128], s2[128];
  const int t = threadIdx.x;
  float a = 0, b = 0;
  for (int i = t; i < n; i += 128) {
    a += x[i];
    b += x[i] * x[i];
  }
  s1[t] = a;
  s2[t] = b;
#ifndef BUG
  __syncthreads();
#endif
  for (int d = 64; d; d >>= 1) {
    if (t < d) {
      s1[t] += s1[t + d];
      s2[t] += s2[t + d];
    }
    __syncthreads();
  }
  if (!t) {
    *mean = s1[0] / n;
    *var = s2[0] / n - *mean * *mean;
  }
}
int main() {
  const int n = 1024;
  Array<float> x(n), mean(1), var(1);
  for (int i = 0; i < n; ++i) x[i] = i % 2;
  x.up();
  variance<<<1, 128>>>(x.device, mean.device, var.device, n);
  mean.down(), var.down();
  CHECK(mean[0] == .5f && var[0] == .25f);
  return ok();
}
