// SPDX-License-Identifier: Apache-2.0
// Half precision: conversions in every rounding, arithmetic, pairs, comparisons.
#include <cuda_fp16.h>

#include "check.cuh"

__global__ void compute(float* out, unsigned short* bits) {
  const __half a = __float2half(1.5f), b = __float2half(2.25f);
  out[0] = __half2float(a + b);
  out[1] = __half2float(__hmul(a, b));
  out[2] = __half2float(__hfma(a, b, a));
  out[3] = __half2float(hsqrt(b));
  half2 p = __floats2half2_rn(1.0f, -2.0f);
  p = __hadd2(p, __half2half2(a));
  out[4] = __low2float(p);
  out[5] = __high2float(p);
  out[6] = __hgt(b, a) && !__hlt(b, a) && __heq(a, a);
  half c = 3;
  c += half(1.0f);
  out[7] = float(c);
  bits[0] = __half_as_ushort(__float2half_rn(65519.0f));
  bits[1] = __half_as_ushort(__float2half_rn(65520.0f));
  bits[2] = __half_as_ushort(__float2half_rz(65530.0f));
  bits[3] = __half_as_ushort(__float2half_rn(5.9604645e-8f));
  bits[4] = __half_as_ushort(__float2half_rn(2.9802322e-8f));
  bits[5] = __half_as_ushort(__float2half_ru(1e-10f));
  bits[6] = __half_as_ushort(__float2half_rd(-1e-10f));
  bits[7] = __half_as_ushort(__float2half_rn(1.00048828125f));
  bits[8] = __half_as_ushort(__float2half_rn(1.00146484375f));
  bits[9] = __half_as_ushort(__float2half_rn(6.0976e-5f));
  bits[10] = __half_as_ushort(__float2half_rn(1e10f));
}

int main() {
  Array<float> out(8);
  Array<unsigned short> bits(11);
  compute<<<1, 1>>>(out.device, bits.device);
  out.down();
  bits.down();
  const float expected[] = {3.75f, 3.375f, 4.875f, 1.5f, 2.5f, -0.5f, 1.0f, 4.0f};
  for (int i = 0; i < 8; ++i) CHECK(out[i] == expected[i]);
  const unsigned short patterns[] = {0x7bff, 0x7c00, 0x7bff, 0x0001, 0x0000, 0x0001,
                                     0x8001, 0x3c00, 0x3c02, 0x03ff, 0x7c00};
  for (int i = 0; i < 11; ++i) CHECK(bits[i] == patterns[i]);
  return ok();
}
