// SPDX-License-Identifier: Apache-2.0
// Softmax of rows: the maximum is read while it is still being found.
#include "check.cuh"

__global__ void softmax(const float* x, float* y, int columns) {
  __shared__ float scratch[64];
  __shared__ float most, total;
  const int t = threadIdx.x;
  const float value = x[blockIdx.x * columns + t];
  scratch[t] = value;
  __syncthreads();
  if (t == 0) {
    float m = scratch[0];
    for (int i = 1; i < columns; ++i) m = fmaxf(m, scratch[i]);
    most = m;
  }
#ifndef BUG
  __syncthreads();
#endif
  const float e = expf(value - most);
  scratch[t] = e;
  __syncthreads();
  if (t == 0) {
    float sum = 0;
    for (int i = 0; i < columns; ++i) sum += scratch[i];
    total = sum;
  }
  __syncthreads();
  y[blockIdx.x * columns + t] = e / total;
}

int main() {
  const int rows = 3, columns = 64;
  Array<float> x(rows * columns), y(rows * columns);
  for (int i = 0; i < x.size; ++i) x[i] = i % 12 * .25f;
  x.up();
  softmax<<<rows, columns>>>(x.device, y.device, columns);
  y.down();
  for (int r = 0; r < rows; ++r) {
    float sum = 0;
    for (int c = 0; c < columns; ++c) sum += y[r * columns + c];
    CHECK(std::fabs(sum - 1) < 1e-5f);
  }
  return ok();
}
