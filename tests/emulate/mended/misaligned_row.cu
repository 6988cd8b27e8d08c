// SPDX-License-Identifier: Apache-2.0
// Rows of 129 floats, read four at a time: only every fourth row begins at a multiple of 16 bytes.
#include "check.cuh"

__global__ void sums(float* out, const float* in, int width) {
  const float* row = in + blockIdx.x * width;
  float sum = 0;
  for (int c = 4 * threadIdx.x; c + 3 < 128; c += 4 * blockDim.x) {
    const float4 v = *reinterpret_cast<const float4*>(&row[c]);  // expect: misaligned
    sum += v.x + v.y + v.z + v.w;
  }
  atomicAdd(&out[blockIdx.x], sum);
}

int main() {
#ifdef BUG
  const int width = 129;
#else
  const int width = 132;
#endif
  Array<float> in(8 * width), out(8);
  for (int i = 0; i < in.size; ++i) in[i] = 1;
  in.up();
  sums<<<8, 32>>>(out.device, in.device, width);
  out.down();
  for (int r = 0; r < 8; ++r) CHECK(out[r] == 128);
  return ok();
}
// says: row length width = 129 is no multiple of 4
