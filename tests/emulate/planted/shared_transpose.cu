// SPDX-License-Identifier: Apache-2.0
// A barrier between the two halves of a transpose.
#include "../programs/check.cuh"

__global__ void transpose(const float* in, float* out) {
  __shared__ float tile[16][17];
  const int x = threadIdx.x, y = threadIdx.y;
  tile[y][x] = in[16 * y + x];  // expect: race
#ifndef BUG
  __syncthreads();
#endif
  out[16 * y + x] = tile[x][y];  // expect: race
}

int main() {
  Array<float> in(256), out(256);
  for (int i = 0; i < 256; ++i) in[i] = static_cast<float>(i);
  in.up();
  transpose<<<1, dim3(16, 16)>>>(in.device, out.device);
  return ok();
}
