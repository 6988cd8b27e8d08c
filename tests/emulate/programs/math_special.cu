// SPDX-License-Identifier: Apache-2.0
// Special functions beside the host's.
#include "check.cuh"

__global__ void special(double* out, float* single) {
  const double x = 0.25 + 0.5 * threadIdx.x;
  double* mine = out + 8 * threadIdx.x;
  mine[0] = erf(x);
  mine[1] = erfcinv(erfc(x / 4));
  mine[2] = tgamma(x);
  mine[3] = j0(x);
  mine[4] = cbrt(x);
  mine[5] = rcbrt(x);
  mine[6] = normcdfinv(normcdf(x / 3));
  mine[7] = hypot(x, 2 * x);
  single[threadIdx.x] =
      exp10f(lgammaf(static_cast<float>(x)) / 10) + rhypotf(3, 4) + norm3df(1, 2, 2);
}

int main() {
  Array<double> out(64);
  Array<float> single(8);
  special<<<1, 8>>>(out.device, single.device);
  out.down();
  single.down();
  for (int i = 0; i < 8; ++i) {
    const double x = 0.25 + 0.5 * i;
    const double expected[8] = {std::erf(x),      x / 4, std::tgamma(x),      j0(x), std::cbrt(x),
                                1 / std::cbrt(x), x / 3, std::hypot(x, 2 * x)};
    for (int k = 0; k < 8; ++k)
      CHECK(std::fabs(out[8 * i + k] - expected[k]) <= 1e-12 * (1 + std::fabs(expected[k])));
    CHECK(std::fabs(single[i] - (std::pow(10, std::lgamma(x) / 10) + 0.2 + 3)) < 1e-4);
  }
  return ok();
}
