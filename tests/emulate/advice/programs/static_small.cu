// SPDX-License-Identifier: Apache-2.0
// A shared array that is shorter than the block.
#include "check.cuh"

__global__ void shuffle(const int* in, int* out) {
#ifdef BUG
  __shared__ int s[64];
#else
  __shared__ int s[128];
#endif
  const int t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  out[t] = s[t ^ 1];
}

int main() {
  Array<int> in(128), out(128);
  for (int i = 0; i < 128; ++i) in[i] = i;
  in.up();
  shuffle<<<1, 128>>>(in.device, out.device);
  out.down();
  for (int i = 0; i < 128; ++i) CHECK(out[i] == (i ^ 1));
  return ok();
}
