// SPDX-License-Identifier: Apache-2.0
// bfloat16: conversions, arithmetic, pairs.
#include <cuda_bf16.h>

#include "check.cuh"

__global__ void compute(float* out, unsigned short* bits) {
  const __nv_bfloat16 a = __float2bfloat16(1.5f), b = __float2bfloat16(2.5f);
  out[0] = __bfloat162float(a + b);
  out[1] = __bfloat162float(__hmul(a, b));
  out[2] = __bfloat162float(__hfma(a, b, a));
  __nv_bfloat162 p = __floats2bfloat162_rn(3.0f, -4.0f);
  p = __hadd2(p, __bfloat162bfloat162(a));
  const float2 f = __bfloat1622float2(p);
  out[3] = f.x + 100 * f.y;
  out[4] = __hgt(b, a) + 2 * __heq(a, a);
  out[5] = static_cast<float>(hexp(__float2bfloat16(0.0f)));
  bits[0] = __bfloat16_as_ushort(__float2bfloat16(1.00390625f));
  bits[1] = __bfloat16_as_ushort(__float2bfloat16(1.01171875f));
  bits[2] = __bfloat16_as_ushort(__float2bfloat16_rz(-1.999f));
}

int main() {
  Array<float> out(6);
  Array<unsigned short> bits(3);
  compute<<<1, 1>>>(out.device, bits.device);
  out.down();
  bits.down();
  CHECK(out[0] == 4 && out[1] == 3.75f && out[2] == 5.25f && out[3] == 4.5f - 250 && out[4] == 3 &&
        out[5] == 1);
  CHECK(bits[0] == 0x3f80 && bits[1] == 0x3f82 && bits[2] == 0xbfff);
  return ok();
}
