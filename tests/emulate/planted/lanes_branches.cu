// SPDX-License-Identifier: Apache-2.0
// One side of a branch does not wait for the other.
#include "../programs/check.cuh"

__global__ void sides(const int* in, int* out) {
  __shared__ int kept[16];
  const int t = threadIdx.x;
#ifdef BUG
  if (t < 16) {
    kept[t] = in[t];  // expect: race
  } else {
    out[t] = kept[t - 16];  // expect: race
  }
#else
  if (t < 16) kept[t] = in[t];
  __syncwarp();
  if (t >= 16) out[t] = kept[t - 16];
#endif
}

int main() {
  Array<int> in(32), out(32);
  in.up();
  sides<<<1, 32>>>(in.device, out.device);
  return ok();
}
