// SPDX-License-Identifier: Apache-2.0
// An index behind a shared array reads its neighbor, which others write: one cause.
#include "check.cuh"

__global__ void pairs(int* out, const int* in) {
  __shared__ int tile[32];
  __shared__ int sums[32];
  const int t = threadIdx.x;
  tile[t] = in[t];
  __syncthreads();
#ifdef BUG
  const int v = tile[t] + tile[t + 1];  // expect: out_of_bounds
#else
  const int v = tile[t] + (t + 1 < 32 ? tile[t + 1] : 0);
#endif
  sums[t] = v;
  __syncthreads();
  out[t] = sums[31 - t];
}

int main() {
  Array<int> in(32), out(32);
  for (int i = 0; i < 32; ++i) in[i] = i;
  in.up();
  pairs<<<1, 32>>>(out.device, in.device);
  out.down();
  for (int i = 0; i < 32; ++i) CHECK(out[i] == (i == 0 ? 31 : 2 * (31 - i) + 1));
  return ok();
}
// says: t + 1 < 32
// never: __syncthreads
