// SPDX-License-Identifier: Apache-2.0
// A template whose tile is overwritten while rows still read it.
#include "check.cuh"

template <typename T, int B>
__global__ void gemv(const T* __restrict__ m, const T* __restrict__ x, T* __restrict__ y, int rows,
                     int cols) {
  __shared__ T part[B];
  const int r = blockIdx.x * B + threadIdx.x;
  T acc = 0;
  for (int c0 = 0; c0 < cols; c0 += B) {
    part[threadIdx.x] = c0 + threadIdx.x < cols ? x[c0 + threadIdx.x] : T(0);
    __syncthreads();
    if (r < rows) {
      for (int j = 0; j < B && c0 + j < cols; ++j) acc += m[r * cols + c0 + j] * part[j];
    }
#ifndef BUG
    __syncthreads();
#endif
  }
  if (r < rows) y[r] = acc;
}
int main() {
  Array<int> m(70 * 90), x(90), y(70);
  for (int i = 0; i < m.size; ++i) m[i] = i % 4;
  for (int i = 0; i < 90; ++i) x[i] = i % 3;
  m.up(), x.up();
  gemv<int, 64><<<2, 64>>>(m.device, x.device, y.device, 70, 90);
  y.down();
  for (int r = 0; r < 70; ++r) {
    int s = 0;
    for (int c = 0; c < 90; ++c) s += m[r * 90 + c] * x[c];
    CHECK(y[r] == s);
  }
  return ok();
}
