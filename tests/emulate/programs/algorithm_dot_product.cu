// SPDX-License-Identifier: Apache-2.0
// A dot product: grid-stride loop, warp sums, one atomic addition per block.
#include "check.cuh"

__global__ void dot(const double* a, const double* b, double* out, int n) {
  __shared__ double sums[4];
  double sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    sum += a[i] * b[i];
  for (int step = 16; step > 0; step >>= 1) sum += __shfl_down_sync(~0u, sum, step);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(out, sums[0] + sums[1] + sums[2] + sums[3]);
}

int main() {
  constexpr int n = 1000;
  Array<double> a(n), b(n), out(1);
  double expected = 0;
  for (int i = 0; i < n; ++i) {
    a[i] = i % 10;
    b[i] = i % 7;
    expected += a[i] * b[i];
  }
  a.up();
  b.up();
  dot<<<3, 128>>>(a.device, b.device, out.device, n);
  out.down();
  CHECK(out[0] == expected);
  return ok();
}
