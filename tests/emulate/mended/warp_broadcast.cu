// SPDX-License-Identifier: Apache-2.0
// The first lane of a warp finds where its warp writes, and all lanes read that.
#include "check.cuh"

__global__ void append(int* out, int* count, const int* in) {
  __shared__ int begin[4];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (lane == 0) begin[warp] = atomicAdd(count, 32);  // expect: race
#ifndef BUG
  __syncwarp();
#endif
  out[begin[warp] + lane] = in[threadIdx.x];  // expect: race
#ifdef BUG
  __syncwarp();
#endif
}

int main() {
  Array<int> in(128), out(1 << 16), count(1);
  for (int i = 0; i < 128; ++i) in[i] = 1;
  in.up();
  append<<<1, 128>>>(out.device + 1024, count.device, in.device);
  out.down();
#ifndef BUG
  for (int i = 0; i < 128; ++i) CHECK(out[1024 + i] == 1);
#endif
  return ok();
}
// says: __syncwarp()
