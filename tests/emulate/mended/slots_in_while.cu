// SPDX-License-Identifier: Apache-2.0
// A max over the block reuses slots in the caller's while loop.
#include "check.cuh"

__inline__ __device__ float warp_max(float v) {
  for (int d = 16; d > 0; d >>= 1) v = fmaxf(v, __shfl_down_sync(0xffffffff, v, d));
  return v;
}
__device__ float block_max(float v) {
  static __shared__ float shared[32];
  const int lane = threadIdx.x % warpSize, wid = threadIdx.x / warpSize;
  v = warp_max(v);
  if (lane == 0) shared[wid] = v;  // expect: race
  __syncthreads();
  v = threadIdx.x < blockDim.x / warpSize ? shared[lane] : -1e30f;  // expect: race
  if (wid == 0) v = warp_max(v);
  return v;
}
__global__ void rows(const float* in, float* out, int count) {
  int r = 0;
  while (r < count) {
    const float m = block_max(in[128 * r + threadIdx.x]);
    if (threadIdx.x == 0) out[r] = m;
    ++r;
#ifndef BUG
    __syncthreads();
#endif
  }
}

int main() {
  Array<float> in(128 * 5), out(5);
  for (int i = 0; i < 640; ++i) in[i] = i;
  in.up();
  rows<<<1, 128>>>(in.device, out.device, 5);
  out.down();
  for (int r = 0; r < 5; ++r) CHECK(out[r] == 128 * r + 127);
  return ok();
}
// says: at the end of the loop body
