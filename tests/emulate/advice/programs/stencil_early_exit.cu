// SPDX-License-Identifier: Apache-2.0
// Threads that leave behind a barrier that is missing.
#include "check.cuh"

__global__ void smooth(const int* in, int* out, int n) {
  __shared__ int s[66];
  int i = blockIdx.x * 64 + threadIdx.x;
  int l = threadIdx.x + 1;
  s[l] = i < n ? in[i] : 0;
  if (threadIdx.x == 0) s[0] = i ? in[i - 1] : 0;
  if (threadIdx.x == 63) s[65] = i + 1 < n ? in[i + 1] : 0;
#ifndef BUG
  __syncthreads();
#endif
  if (i >= n) return;
  out[i] = s[l - 1] + s[l] + s[l + 1];
}
int main() {
  Array<int> in(150), out(150);
  for (int i = 0; i < 150; ++i) in[i] = i % 7;
  in.up();
  smooth<<<3, 64>>>(in.device, out.device, 150);
  out.down();
  for (int i = 0; i < 150; ++i)
    CHECK(out[i] == (i ? in[i - 1] : 0) + in[i] + (i < 149 ? in[i + 1] : 0));
  return ok();
}
