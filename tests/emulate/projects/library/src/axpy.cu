// SPDX-License-Identifier: Apache-2.0
// y += a * x, one thread per element.
#include "device_array.h"
#include "vectors.h"

namespace {
__global__ void axpy_kernel(int n, float a, const float* __restrict__ x, float* __restrict__ y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}
}  // namespace

void axpy(int n, float a, const float* x, float* y) {
  DeviceArray<float> dx(n), dy(n);
  dx.load(x);
  dy.load(y);
  axpy_kernel<<<(n + 127) / 128, 128>>>(n, a, dx.data(), dy.data());
  dy.store(y);
}
