// SPDX-License-Identifier: Apache-2.0
// A sum by shuffles, one warp per element, then one block.
#include "check.cuh"

__inline__ __device__ float warp_sum(float v) {
  for (int offset = warpSize / 2; offset > 0; offset /= 2)
    v += __shfl_down_sync(0xffffffff, v, offset);
  return v;
}
__inline__ __device__ float block_sum(float v) {
  static __shared__ float partial[32];
  const int lane = threadIdx.x % warpSize, warp = threadIdx.x / warpSize;
  v = warp_sum(v);
  if (lane == 0) partial[warp] = v;
  __syncthreads();
  v = threadIdx.x < blockDim.x / warpSize ? partial[lane] : 0;
  if (warp == 0) v = warp_sum(v);
  return v;
}
__global__ void sum(const float* in, float* out, int n) {
  float v = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
    v += in[i];
  v = block_sum(v);
  if (threadIdx.x == 0) atomicAdd(out, v);
}

int main() {
  const int n = 10000;
  Array<float> in(n), out(1);
  for (int i = 0; i < n; ++i) in[i] = static_cast<float>(i % 10);
  in.up();
  sum<<<4, 256>>>(in.device, out.device, n);
  out.down();
  CHECK(out[0] == 45000);
  return ok();
}
