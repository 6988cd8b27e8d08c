// SPDX-License-Identifier: Apache-2.0
// Sum in one block; MISSING_BARRIER leaves out the barrier of its tree.
#include "device_array.h"
#include "vectors.h"

namespace {
template <int threads>
__global__ void sum_kernel(int n, const float* x, float* total) {
  __shared__ float partial[threads];
  float mine = 0;
  for (int i = threadIdx.x; i < n; i += threads) mine += x[i];
  partial[threadIdx.x] = mine;
  for (int half = threads / 2; half > 0; half /= 2) {
#ifndef MISSING_BARRIER
    __syncthreads();
#endif
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
  }
  if (threadIdx.x == 0) *total = partial[0];
}
}  // namespace

float sum(int n, const float* x) {
  DeviceArray<float> dx(n), total(1);
  dx.load(x);
  sum_kernel<128><<<1, 128>>>(n, dx.data(), total.data());
  float result = 0;
  total.store(&result);
  return result;
}
