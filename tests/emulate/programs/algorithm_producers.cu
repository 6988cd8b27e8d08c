// SPDX-License-Identifier: Apache-2.0
// Warps with roles of their own: two named barriers hand a buffer back and forth.
#include "check.cuh"

__global__ void roles(const int* in, int* out) {
  __shared__ int buffer[32];
  const int t = threadIdx.x % 32;
  for (int round = 0; round < 4; ++round) {
    if (threadIdx.x < 32) {
      if (round > 0) asm volatile("bar.sync 2, 64;" ::: "memory");
      buffer[t] = in[32 * round + t];
      asm volatile("bar.arrive 1, 64;" ::: "memory");
    } else {
      asm volatile("bar.sync 1, 64;" ::: "memory");
      out[32 * round + t] = 2 * buffer[31 - t];
      if (round < 3) asm volatile("bar.arrive 2, 64;" ::: "memory");
    }
  }
}

int main() {
  Array<int> in(128), out(128);
  for (int i = 0; i < 128; ++i) in[i] = i;
  in.up();
  roles<<<1, 64>>>(in.device, out.device);
  out.down();
  for (int i = 0; i < 128; ++i) CHECK(out[i] == 2 * (i / 32 * 32 + 31 - i % 32));
  return ok();
}
