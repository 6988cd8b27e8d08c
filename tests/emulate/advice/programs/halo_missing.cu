// SPDX-License-Identifier: Apache-2.0
// A halo that the shared array has no room for.
#include "check.cuh"

__global__ void mean(const float* in, float* out, int n) {
#ifdef BUG
  __shared__ float s[64];
#else
  __shared__ float s[65];
#endif
  const int t = threadIdx.x, i = blockIdx.x * 64 + t;
  s[t + 1] = in[i];
  if (t == 0) s[0] = i > 0 ? in[i - 1] : 0;
  __syncthreads();
  out[i] = (s[t] + s[t + 1]) / 2;
}

int main() {
  const int n = 128;
  Array<float> in(n), out(n);
  for (int i = 0; i < n; ++i) in[i] = 2 * i;
  in.up();
  mean<<<2, 64>>>(in.device, out.device, n);
  out.down();
  for (int i = 1; i < n; ++i) CHECK(out[i] == 2 * i - 1);
  return ok();
}
