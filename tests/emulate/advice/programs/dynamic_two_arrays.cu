// SPDX-License-Identifier: Apache-2.0
// Two arrays in dynamic shared memory that has room for one.
#include "check.cuh"

__global__ void merge(const int* a, const int* b, int* c, int n) {
  extern __shared__ int buf[];
  int* left = buf;
  int* right = buf + n;
  left[threadIdx.x] = a[threadIdx.x];
  right[threadIdx.x] = b[threadIdx.x];
  __syncthreads();
  c[threadIdx.x] = left[n - 1 - threadIdx.x] + right[threadIdx.x];
}
int main() {
  Array<int> a(64), b(64), c(64);
  for (int i = 0; i < 64; ++i) a[i] = i, b[i] = 100 * i;
  a.up(), b.up();
#ifdef BUG
  merge<<<1, 64, 64 * sizeof(int)>>>(a.device, b.device, c.device, 64);
#else
  merge<<<1, 64, 128 * sizeof(int)>>>(a.device, b.device, c.device, 64);
#endif
  c.down();
  for (int i = 0; i < 64; ++i) CHECK(c[i] == 63 - i + 100 * i);
  return ok();
}
