// SPDX-License-Identifier: Apache-2.0
// A compaction whose place is taken before all have counted.
#include "check.cuh"

__global__ void compact(const int* in, int* out, int* count, int n) {
  __shared__ int local;
  __shared__ int base;
  if (threadIdx.x == 0) local = 0;
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x, slot = -1;
  if (i < n && in[i] > 0) slot = atomicAdd(&local, 1);
#ifndef BUG
  __syncthreads();
#endif
  if (threadIdx.x == 0) base = atomicAdd(count, local);
  __syncthreads();
  if (slot >= 0) out[base + slot] = in[i];
}
int main() {
  Array<int> in(256), out(256), count(1);
  int e = 0, s = 0, g = 0;
  for (int i = 0; i < 256; ++i) {
    in[i] = i % 3;
    e += i % 3 > 0;
    s += i % 3;
  }
  in.up();
  compact<<<4, 64>>>(in.device, out.device, count.device, 256);
  count.down(), out.down();
  for (int i = 0; i < count[0]; ++i) g += out[i];
  CHECK(count[0] == e && g == s);
  return ok();
}
