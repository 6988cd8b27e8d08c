// SPDX-License-Identifier: Apache-2.0
// The upper half of a warp exchanges within itself.
#include "../programs/check.cuh"

__global__ void swap(float* data) {
  const int lane = threadIdx.x;
  float v = data[lane];
  if (lane >= 16) {
#ifdef BUG
    v += __shfl_xor_sync(0xffff0000, v, 16);  // expect: warp_sync
#else
    v += __shfl_xor_sync(0xffff0000, v, 8);
#endif
    data[lane] = v * 2;
  }
}

int main() {
  Array<float> data(32);
  for (int i = 0; i < 32; ++i) data[i] = static_cast<float>(i);
  data.up();
  swap<<<1, 32>>>(data.device);
#ifndef BUG
  data.down();
  CHECK(data[16] == 80);
#endif
  return ok();
}
