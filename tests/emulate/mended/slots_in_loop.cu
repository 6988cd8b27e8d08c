// SPDX-License-Identifier: Apache-2.0
// A sum of the block called in a loop by way of another function: each round refills the slots.
#include "check.cuh"

__device__ float block_sum(float v, float* slots) {
  for (int d = 16; d; d /= 2) v += __shfl_xor_sync(~0u, v, d);
  if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = v;  // expect: race
  __syncthreads();
  float sum = 0;
  for (int w = 0; w < 4; ++w) sum += slots[w];  // expect: race
  return sum;
}
__device__ float mean(float v, float* slots) { return block_sum(v, slots) / 128; }
__global__ void centered(float* rows, int count) {
  __shared__ float slots[4];
  for (int r = 0; r < count; ++r) {
    float& element = rows[128 * r + threadIdx.x];
    element -= mean(element, slots);
#ifndef BUG
    __syncthreads();
#endif
  }
}

int main() {
  Array<float> rows(512);
  for (int i = 0; i < 512; ++i) rows[i] = i % 2;
  rows.up();
  centered<<<1, 128>>>(rows.device, 4);
  rows.down();
  for (int i = 0; i < 512; ++i) CHECK(rows[i] == i % 2 - 0.5f);
  return ok();
}
// says: at the end of the loop body, after line 18
