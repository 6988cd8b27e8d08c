// SPDX-License-Identifier: Apache-2.0
// A maximum whose loop is one line.
#include "check.cuh"

__global__ void largest(const int* in, int* out) {
  __shared__ int best[128];
  const int t = threadIdx.x;
  best[t] = in[t];
  __syncthreads();
#ifdef BUG
  for (int s = 64; s > 0; s /= 2) if (t < s) best[t] = max(best[t], best[t + s]);
#else
  for (int s = 64; s > 0; s /= 2) {
    if (t < s) best[t] = max(best[t], best[t + s]);
    __syncthreads();
  }
#endif
  if (t == 0) *out = best[0];
}

int main() {
  Array<int> in(128), out(1);
  for (int i = 0; i < 128; ++i) in[i] = i * 37 % 101;
  in.up();
  largest<<<1, 128>>>(in.device, out.device);
  out.down();
  int most = 0;
  for (int i = 0; i < 128; ++i) most = in[i] > most ? in[i] : most;
  CHECK(out[0] == most);
  return ok();
}
