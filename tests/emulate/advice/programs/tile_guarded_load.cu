// SPDX-License-Identifier: Apache-2.0
// A tile whose elements behind the end of the array are summed, and were never written.
#include "check.cuh"

__global__ void sums(const int* in, int* out, int n) {
  __shared__ int tile[64];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef BUG
  if (i < n) tile[threadIdx.x] = in[i];
#else
  tile[threadIdx.x] = i < n ? in[i] : 0;
#endif
  __syncthreads();
  int sum = 0;
  for (int k = 0; k < 64; ++k) sum += tile[k];
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

int main() {
  const int n = 100;
  Array<int> in(n), out(2);
  for (int i = 0; i < n; ++i) in[i] = 1 + i % 17;
  in.up();
  sums<<<2, 64>>>(in.device, out.device, n);
  out.down();
  int sum = 0;
  for (int i = 64; i < n; ++i) sum += in[i];
  CHECK(out[1] == sum);
  return ok();
}
