// SPDX-License-Identifier: Apache-2.0
// A work-efficient scan whose way up lacks its barrier.
#include "check.cuh"

__global__ void exclusive(int* g) {
  __shared__ int temp[128];
  const int thid = threadIdx.x;
  int offset = 1;
  temp[2 * thid] = g[2 * thid];
  temp[2 * thid + 1] = g[2 * thid + 1];
  for (int d = 128 >> 1; d > 0; d >>= 1) {
#ifndef BUG
    __syncthreads();
#endif
    if (thid < d) {
      int ai = offset * (2 * thid + 1) - 1;
      int bi = offset * (2 * thid + 2) - 1;
      temp[bi] += temp[ai];
    }
    offset *= 2;
  }
  if (thid == 0) temp[127] = 0;
  for (int d = 1; d < 128; d *= 2) {
    offset >>= 1;
    __syncthreads();
    if (thid < d) {
      int ai = offset * (2 * thid + 1) - 1;
      int bi = offset * (2 * thid + 2) - 1;
      int t = temp[ai];
      temp[ai] = temp[bi];
      temp[bi] += t;
    }
  }
  __syncthreads();
  g[2 * thid] = temp[2 * thid];
  g[2 * thid + 1] = temp[2 * thid + 1];
}

int main() {
  Array<int> g(128);
  for (int i = 0; i < 128; ++i) g[i] = i % 6;
  g.up();
  exclusive<<<1, 64>>>(g.device);
  g.down();
  for (int i = 0, sum = 0; i < 128; ++i) {
    CHECK(g[i] == sum);
    sum += i % 6;
  }
  return ok();
}
