// SPDX-License-Identifier: Apache-2.0
// CUDA's own functions, the fast ones, minima and maxima of mixed types.
#include "check.cuh"

__global__ void compute(double* out) {
  int i = 0;
  out[i++] = rsqrtf(4.0f);
  out[i++] = rsqrt(16.0);
  out[i++] = sinpi(0.5);
  out[i++] = cospif(1.0f);
  out[i++] = normcdf(0.0);
  out[i++] = erfinv(erf(0.3));
  out[i++] = normcdfinv(0.975);
  out[i++] = __saturatef(1.5f) + __saturatef(-2.0f);
  out[i++] = min(3, 4u) + max(2.5f, 1.0) + max(-1ll, 5ll);
  out[i++] = fmaxf(nanf(""), 2.0f);
  out[i++] = __expf(1.0f);
  out[i++] = __powf(2.0f, 10.0f);
  out[i++] = __fdividef(1.0f, 4.0f);
  out[i++] = exp10(2.0) + exp2f(3.0f) + cbrt(27.0) + rcbrt(8.0);
  out[i++] = norm3d(2.0, 3.0, 6.0) + hypot(3.0, 4.0) + rhypot(3.0, 4.0);
  float s, c;
  sincosf(0.0f, &s, &c);
  out[i++] = s + c;
  __sincosf(0.0f, &s, &c);
  out[i++] = s + c;
  out[i++] = abs(-2) + abs(-2.5f) + fabs(-1.5) + labs(-4l);
  out[i++] = isnan(nan("")) + isinf(INFINITY) + isfinite(1.0f) + signbit(-1.0f);
  out[i++] =
      ldexp(1.0, 4) + fmod(7.0, 4.0) + remainder(7.0, 4.0) + trunc(2.7) + rint(2.5) + lrint(3.6);
}

int main() {
  Array<double> out(20);
  compute<<<1, 1>>>(out.device);
  out.down();
  const double expected[] = {0.5,
                             0.25,
                             1,
                             -1,
                             0.5,
                             0.3,
                             1.959963984540054,
                             1,
                             3 + 2.5 + 5,
                             2,
                             2.718281828,
                             1024,
                             0.25,
                             100 + 8 + 3 + 0.5,
                             7 + 5 + 0.2,
                             1,
                             1,
                             2 + 2.5 + 1.5 + 4,
                             4,
                             16 + 3 - 1 + 2 + 2 + 4};
  for (int i = 0; i < 20; ++i)
    CHECK(std::fabs(out[i] - expected[i]) <= 1e-5 * std::fabs(expected[i]));
  return ok();
}
