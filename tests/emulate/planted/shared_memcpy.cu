// SPDX-License-Identifier: Apache-2.0
// Pieces copied by memcpy, of a size that the compiler does not know, and read by other threads.
#include <cstring>

#include "../programs/check.cuh"

__global__ void turn(const int* in, int* out, int each) {
  __shared__ int tile[256];
  const int t = threadIdx.x;
  std::memcpy(tile + each * t, in + each * t, each * sizeof(int));  // expect: race
#ifndef BUG
  __syncthreads();
#endif
  int mine[8];
  memcpy(mine, tile + each * (63 - t), each * sizeof(int));  // expect: race
  for (int i = 0; i < each; ++i) out[each * t + i] = mine[i];
}

int main() {
  Array<int> in(256), out(256);
  for (int i = 0; i < 256; ++i) in[i] = i;
  in.up();
  turn<<<1, 64>>>(in.device, out.device, 4);
  out.down();
#ifndef BUG
  for (int i = 0; i < 256; ++i) CHECK(out[i] == 4 * (63 - i / 4) + i % 4);
#endif
  return ok();
}
