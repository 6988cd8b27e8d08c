// SPDX-License-Identifier: Apache-2.0
// All distances: two blocks of rows in shared memory.
#include "check.cuh"

__global__ void distances(const float* rows, float* result, int count) {
  __shared__ float mine[8][4];
  __shared__ float theirs[8][4];
  const int i = blockIdx.y * 8 + threadIdx.y, j = blockIdx.x * 8 + threadIdx.x;
  if (threadIdx.x < 4) {
    mine[threadIdx.y][threadIdx.x] = rows[i * 4 + threadIdx.x];
    theirs[threadIdx.y][threadIdx.x] = rows[(blockIdx.x * 8 + threadIdx.y) * 4 + threadIdx.x];
  }
#ifndef BUG
  __syncthreads();
#endif
  float sum = 0;
  for (int k = 0; k < 4; ++k) {
    const float d = mine[threadIdx.y][k] - theirs[threadIdx.x][k];
    sum += d * d;
  }
  result[i * count + j] = sum;
}

int main() {
  const int count = 16;
  Array<float> rows(count * 4), result(count * count);
  for (int i = 0; i < rows.size; ++i) rows[i] = i * 7 % 11;
  rows.up();
  distances<<<dim3(2, 2), dim3(8, 8)>>>(rows.device, result.device, count);
  result.down();
  for (int i = 0; i < count * count; ++i) {
    float sum = 0;
    for (int k = 0; k < 4; ++k) {
      const float d = rows[i / count * 4 + k] - rows[i % count * 4 + k];
      sum += d * d;
    }
    CHECK(result[i] == sum);
  }
  return ok();
}
