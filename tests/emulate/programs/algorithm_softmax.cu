// SPDX-License-Identifier: Apache-2.0
// Softmax of rows: the maximum, then the sum, by shuffles.
#include "check.cuh"

__device__ float warp_max(float v) {
  for (int step = 16; step > 0; step /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, step));
  return v;
}
__device__ float warp_sum(float v) {
  for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(0xffffffffu, v, step);
  return v;
}
__global__ void softmax(const float* in, float* out, int columns) {
  const float* row = in + blockIdx.x * columns;
  float most = -INFINITY, sum = 0;
  for (int i = threadIdx.x; i < columns; i += 32) most = fmaxf(most, row[i]);
  most = warp_max(most);
  for (int i = threadIdx.x; i < columns; i += 32) sum += __expf(row[i] - most);
  sum = warp_sum(sum);
  for (int i = threadIdx.x; i < columns; i += 32) {
    out[blockIdx.x * columns + i] = __expf(row[i] - most) / sum;
  }
}

int main() {
  constexpr int rows = 4, columns = 70;
  Array<float> in(rows * columns), out(rows * columns);
  for (int i = 0; i < rows * columns; ++i) in[i] = static_cast<float>((i * 37) % 23) - 100;
  in.up();
  softmax<<<rows, 32>>>(in.device, out.device, columns);
  out.down();
  for (int r = 0; r < rows; ++r) {
    double sum = 0, exact = 0;
    for (int c = 0; c < columns; ++c) sum += out[r * columns + c];
    for (int c = 0; c < columns; ++c) exact += std::exp(in[r * columns + c] + 78.0);
    CHECK(std::fabs(sum - 1) < 1e-5);
    CHECK(std::fabs(out[r * columns] - std::exp(in[r * columns] + 78.0) / exact) < 1e-5);
  }
  return ok();
}
