// SPDX-License-Identifier: Apache-2.0
// Complex numbers by cuComplex.h's functions, in both precisions, on the device and on the host.
#include <cuComplex.h>

#include "check.cuh"

__host__ __device__ bool near(double a, double b) { return a - b < 1e-6 && b - a < 1e-6; }
__host__ __device__ bool is(cuDoubleComplex z, double real, double imaginary) {
  return near(z.x, real) && near(z.y, imaginary);
}
__host__ __device__ bool is(cuFloatComplex z, double real, double imaginary) {
  return is(cuComplexFloatToDouble(z), real, imaginary);
}

/// The first that is wrong; 0: none.
__host__ __device__ int in_float() {
  const cuComplex a = make_cuComplex(1, 2), b = make_cuFloatComplex(3, -4);
  if (cuCrealf(b) != 3 || cuCimagf(b) != -4) return 1;
  if (!is(cuConjf(b), 3, 4)) return 2;
  if (!is(cuCaddf(a, b), 4, -2)) return 3;
  if (!is(cuCsubf(a, b), -2, 6)) return 4;
  if (!is(cuCmulf(a, b), 11, 2)) return 5;
  if (!is(cuCdivf(a, b), -0.2, 0.4)) return 6;
  if (cuCabsf(b) != 5) return 7;
  if (!is(cuCfmaf(a, b, make_cuComplex(0.5f, 0.25f)), 11.5, 2.25)) return 8;
  // Whose squares no float holds.
  const cuComplex large = make_cuComplex(3e30f, 4e30f);
  if (!is(cuCdivf(large, large), 1, 0)) return 9;
  if (!near(cuCabsf(large) / 5e30f, 1)) return 10;
  return 0;
}
__host__ __device__ int in_double() {
  const cuDoubleComplex a = make_cuDoubleComplex(1, 2), b = make_cuDoubleComplex(3, -4);
  if (cuCreal(b) != 3 || cuCimag(b) != -4) return 1;
  if (!is(cuConj(b), 3, 4)) return 2;
  if (!is(cuCadd(a, b), 4, -2)) return 3;
  if (!is(cuCsub(a, b), -2, 6)) return 4;
  if (!is(cuCmul(a, b), 11, 2)) return 5;
  if (!is(cuCdiv(a, b), -0.2, 0.4)) return 6;
  if (cuCabs(b) != 5) return 7;
  if (!is(cuCfma(a, b, make_cuDoubleComplex(0.5, 0.25)), 11.5, 2.25)) return 8;
  const cuDoubleComplex large = make_cuDoubleComplex(3e300, 4e300);
  if (!is(cuCdiv(large, large), 1, 0)) return 9;
  if (!near(cuCabs(large) / 5e300, 1)) return 10;
  // Rounded once, which 16777217 shows.
  const cuFloatComplex narrow = cuComplexDoubleToFloat(make_cuDoubleComplex(16777217, -0.5));
  if (narrow.x != 16777216 || narrow.y != -0.5f) return 11;
  return 0;
}
__global__ void check(int* wrong) {
  wrong[0] = in_float();
  wrong[1] = in_double();
}

int main() {
  CHECK(in_float() == 0);
  CHECK(in_double() == 0);
  Array<int> wrong(2);
  check<<<1, 1>>>(wrong.device);
  wrong.down();
  CHECK(wrong[0] == 0);
  CHECK(wrong[1] == 0);
  return ok();
}
