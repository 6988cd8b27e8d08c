// SPDX-License-Identifier: Apache-2.0
// Floating point numbers as bits, and back.
#include "check.cuh"

__global__ void bits(int* out, float* numbers) {
  out[0] = __float_as_int(1.0f);
  out[1] = static_cast<int>(__double_as_longlong(1.0) >> 52);
  out[2] = __double2hiint(-2.0);
  out[3] = __double2loint(1.0 + 1.0 / (1ll << 52));
  out[4] = isnan(__int_as_float(0x7fc00000)) && isinf(__int_as_float(0x7f800000));
  out[5] = __float2int_rd(-1.5f) * 10 + __float2int_ru(-1.5f);
  out[6] = ilogb(40.0) + (signbit(-0.0f) ? 100 : 0);
  numbers[0] = static_cast<float>(__hiloint2double(0x40080000, 0));
  numbers[1] = __saturatef(7.0f) + __saturatef(-3.0f);
  numbers[2] = copysignf(3.0f, -0.0f) + ldexpf(1.5f, 3) + fmodf(7.5f, 2.0f);
  int exponent;
  numbers[3] = frexpf(12.0f, &exponent) + exponent;
  numbers[4] = nextafterf(1.0f, 2.0f);
}

int main() {
  Array<int> out(7);
  Array<float> numbers(5);
  bits<<<1, 1>>>(out.device, numbers.device);
  out.down();
  numbers.down();
  CHECK(out[0] == 0x3f800000 && out[1] == 1023 && out[2] == static_cast<int>(0xc0000000u) &&
        out[3] == 1);
  CHECK(out[4] == 1 && out[5] == -21 && out[6] == 105);
  CHECK(numbers[0] == 3 && numbers[1] == 1 && numbers[2] == -3 + 12 + 1.5f && numbers[3] == 4.75f);
  CHECK(numbers[4] > 1 && numbers[4] < 1.000001f);
  return ok();
}
