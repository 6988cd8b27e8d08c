// SPDX-License-Identifier: Apache-2.0
// Block sums that are added to one number by plain additions.
#include "check.cuh"

__global__ void dot(const float* x, const float* y, float* result) {
  __shared__ float cache[128];
  const int t = threadIdx.x;
  cache[t] = x[blockIdx.x * 128 + t] * y[blockIdx.x * 128 + t];
  __syncthreads();
  for (int s = 64; s > 0; s /= 2) {
    if (t < s) cache[t] += cache[t + s];
    __syncthreads();
  }
#ifdef BUG
  if (t == 0) *result += cache[0];
#else
  if (t == 0) atomicAdd(result, cache[0]);
#endif
}

int main() {
  const int n = 512;
  Array<float> x(n), y(n), result(1);
  float expected = 0;
  for (int i = 0; i < n; ++i) {
    x[i] = i % 4, y[i] = i % 3;
    expected += x[i] * y[i];
  }
  x.up(), y.up();
  dot<<<n / 128, 128>>>(x.device, y.device, result.device);
  result.down();
  CHECK(result[0] == expected);
  return ok();
}
