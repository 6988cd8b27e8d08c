// SPDX-License-Identifier: Apache-2.0
// Arithmetic and conversions in each rounding.
#include "check.cuh"

__global__ void compute(float* f, double* d, long long* n) {
  volatile float one = 1, third = 3, tiny = 1e-10f;
  f[0] = __fadd_rn(one, tiny);
  f[1] = __fadd_ru(one, tiny);
  f[2] = __fsub_rd(one, tiny);
  f[3] = __fdiv_rz(one, third);
  f[4] = __fdiv_ru(one, third);
  f[5] = __fmul_rn(third, third);
  f[6] = __fsqrt_rd(third);
  f[7] = __fsqrt_ru(third);
  f[8] = __fmaf_rn(third, third, one);
  f[9] = __frcp_rn(third);
  volatile double e = 1e-30, unit = 1;
  d[0] = __dadd_ru(unit, e);
  d[1] = __dadd_rd(unit, e);
  d[2] = __fma_rn(unit, unit, unit);
  f[10] = __double2float_ru(1.0 + 1e-12);
  f[11] = __int2float_rz(16777217);
  f[12] = __int2float_ru(16777217);
  n[0] = __float2int_rn(2.5f);
  n[1] = __float2int_ru(2.1f);
  n[2] = __float2int_rd(-2.1f);
  n[3] = __float2int_rz(-2.9f);
  n[4] = __float2int_rn(1e20f);
  n[5] = __float2int_rn(nanf(""));
  n[6] = __double2ll_rn(-3.5);
  n[7] = __float2uint_rz(-5.0f);
  n[8] = __double2hiint(1.0) == 0x3ff00000 && __double2loint(1.0) == 0;
}

int main() {
  Array<float> f(13);
  Array<double> d(3);
  Array<long long> n(9);
  compute<<<1, 1>>>(f.device, d.device, n.device);
  f.down();
  d.down();
  n.down();
  const float up = 1 + 1.1920929e-7f, down = 1 - 5.9604645e-8f;
  CHECK(f[0] == 1 && f[1] == up && f[2] == down);
  CHECK(f[3] < f[4] && f[4] == std::nextafter(f[3], 1.0f));
  CHECK(f[5] == 9 && f[7] == std::nextafter(f[6], 2.0f) && f[8] == 10 && f[9] == 1.0f / 3);
  CHECK(d[0] > 1 && d[1] == 1 && d[2] == 2);
  CHECK(f[10] == up && f[11] == 16777216 && f[12] == 16777218);
  CHECK(n[0] == 2 && n[1] == 3 && n[2] == -3 && n[3] == -2 && n[4] == 2147483647 && n[5] == 0);
  CHECK(n[6] == -4 && n[7] == 0 && n[8] == 1);
  return ok();
}
