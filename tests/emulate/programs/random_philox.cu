// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10: the counter and key of zero, and one sequence in parts.
#include <curand_kernel.h>

#include "check.cuh"

__global__ void draw(unsigned* out, float* reals) {
  curandStatePhilox4_32_10_t state;
  curand_init(0, 0, 0, &state);
  for (int i = 0; i < 4; ++i) out[i] = curand(&state);
  curand_init(1234, 7, 0, &state);
  for (int i = 0; i < 8; ++i) out[4 + i] = curand(&state);
  curand_init(1234, 7, 5, &state);
  for (int i = 0; i < 3; ++i) out[12 + i] = curand(&state);
  curand_init(1234, 7, 0, &state);
  const uint4 four = curand4(&state);
  out[15] = four.x == out[4] && four.y == out[5] && four.z == out[6] && four.w == out[7];
  for (int i = 0; i < 100; ++i) reals[i] = curand_uniform(&state);
  const float4 f = curand_uniform4(&state);
  reals[100] = f.x;
}

int main() {
  Array<unsigned> out(16);
  Array<float> reals(101);
  draw<<<1, 1>>>(out.device, reals.device);
  out.down();
  reals.down();
  const unsigned zero[] = {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u};
  for (int i = 0; i < 4; ++i) CHECK(out[i] == zero[i]);
  for (int i = 0; i < 3; ++i) CHECK(out[12 + i] == out[9 + i]);
  CHECK(out[15] == 1);
  for (int i = 0; i < 101; ++i) CHECK(reals[i] > 0 && reals[i] <= 1);
  return ok();
}
