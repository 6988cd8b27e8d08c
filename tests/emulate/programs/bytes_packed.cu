// SPDX-License-Identifier: Apache-2.0
// Four bytes at once: SIMD intrinsics, dot products, permutations, funnel shifts.
#include "check.cuh"

__global__ void pack(unsigned* out) {
  const unsigned t = threadIdx.x, a = 0x01020304u * (t + 1), b = 0x04030201u;
  out[8 * t] = __vadd4(a, b);
  out[8 * t + 1] = __dp4a(a, b, 5u);
  out[8 * t + 2] = __byte_perm(a, b, 0x7140);
  out[8 * t + 3] = __funnelshift_l(a, b, 8);
  out[8 * t + 4] = __vmaxu4(a, b);
  out[8 * t + 5] = __usad(a, b, 1u);
  out[8 * t + 6] = __umulhi(a << 8, b << 8);
  out[8 * t + 7] = __clz(t + 1) + 100 * __ffs(t + 4) + 10000 * __popc(a);
}

int main() {
  Array<unsigned> out(32);
  pack<<<1, 4>>>(out.device);
  out.down();
  for (unsigned t = 0; t < 4; ++t) {
    const unsigned a = 0x01020304u * (t + 1), b = 0x04030201u;
    const unsigned m = t + 1;
    CHECK(out[8 * t] == a + b && out[8 * t + 1] == 5 + m * (1 * 4 + 2 * 3 + 3 * 2 + 4 * 1));
    CHECK(out[8 * t + 2] ==
          ((b & 0xff000000u) | (a >> 8 & 0xff) << 16 | (b & 0xff) << 8 | (a & 0xff)));
    CHECK(out[8 * t + 3] == (b << 8 | a >> 24));
    CHECK(out[8 * t + 5] == (a > b ? a - b : b - a) + 1);
    CHECK(out[8 * t + 6] ==
          static_cast<unsigned>((static_cast<unsigned long long>(a << 8) * (b << 8)) >> 32));
  }
  CHECK(out[4] == 0x04030304u && out[7] == 31 + 100 * 3 + 10000 * 5);
  return ok();
}
