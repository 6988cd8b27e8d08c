// SPDX-License-Identifier: Apache-2.0
// Numbers of 8 bits: both formats, rounding, saturation, pairs and fours.
#include <cuda_fp8.h>

#include "check.cuh"

__global__ void convert(const float* in, unsigned char* small, float* back, float* pairs) {
  const int t = threadIdx.x;
  const __nv_fp8_e4m3 a(in[t]);
  const __nv_fp8_e5m2 b(in[t]);
  small[2 * t] = a.__x;
  small[2 * t + 1] = b.__x;
  back[2 * t] = float(a);
  back[2 * t + 1] = static_cast<float>(b);
  const __nv_fp8x2_e4m3 two(make_float2(in[t], -in[t]));
  const float2 unpacked = float2(two);
  const __nv_fp8x4_e5m2 four(make_float4(in[t], 1, 2, 3));
  pairs[t] = unpacked.x + unpacked.y + float4(four).w;
}

int main() {
  const float numbers[8] = {1, -2.5f, 0.3f, 448, 1000, 1e6f, 0.001f, NAN};
  Array<float> in(8), back(16), pairs(8);
  Array<unsigned char> small(16);
  for (int i = 0; i < 8; ++i) in[i] = numbers[i];
  in.up();
  convert<<<1, 8>>>(in.device, small.device, back.device, pairs.device);
  small.down();
  back.down();
  pairs.down();
  CHECK(small[0] == 0x38 && small[1] == 0x3c && back[0] == 1 && back[1] == 1);
  CHECK(small[2] == 0xc2 && back[2] == -2.5f && back[3] == -2.5f);
  CHECK(back[4] == 0.3125f && back[5] == 0.3125f);
  CHECK(small[6] == 0x7e && back[6] == 448 && back[7] == 448);
  CHECK(back[8] == 448 && back[9] == 1024);  // beyond the largest number: that one
  CHECK(back[10] == 448 && back[11] == 57344);
  CHECK(back[12] == 1.0f / 512 * 1 ||
        back[12] == 0);  // half of the smallest number, and a little more
  CHECK((small[14] & 0x7f) == 0x7f && back[14] != back[14] && back[15] != back[15]);
  for (int i = 0; i < 7; ++i) CHECK(pairs[i] == 3);
  return ok();
}
