// SPDX-License-Identifier: Apache-2.0
// Bits, products, funnels, bytes.
#include "check.cuh"

__global__ void compute(long long* out) {
  const unsigned a = 0x80f0a005u, b = 0x12345678u;
  int i = 0;
  out[i++] = __popc(a);
  out[i++] = __popcll(0xff00ff00ff00ff00ull);
  out[i++] = __clz(0x00800000);
  out[i++] = __clz(0);
  out[i++] = __clzll(1);
  out[i++] = __ffs(0x10) * 100 + __ffs(0);
  out[i++] = __brev(0x1u) == 0x80000000u && __brevll(2) == 0x4000000000000000ull;
  out[i++] = __umulhi(a, b);
  out[i++] = __mulhi(-5, 1 << 30);
  out[i++] = __mul24(-3, 7) + __umul24(0x1000003u, 2);
  out[i++] = __umul64hi(~0ull, 16);
  out[i++] = __funnelshift_l(a, b, 8);
  out[i++] = __funnelshift_r(a, b, 36);
  out[i++] = __byte_perm(a, b, 0x7610);
  out[i++] = __sad(-5, 7, 100) + __usad(3, 9, 1);
  out[i++] = __hadd(-3, 4) + 10 * __rhadd(3, 4) + 100 * __uhadd(7u, 8u);
  out[i++] = __dp4a(0x01020304, 0x05060708, 10);
  out[i++] = __dp4a(static_cast<int>(0xff02fe04u), 0x05060708, 0);
  out[i++] = __vadd4(0x01ff7f80u, 0x01010101u);
  out[i++] = __vmaxu4(0x01ff7f80u, 0x10101090u);
  out[i++] = __vcmpeq4(0x01020304u, 0x01ff03ffu);
  out[i++] = __vabsdiffu4(0x05000a00u, 0x01010101u);
  out[i++] = __vaddss2(0x7fff8000u, 0x0001ffffu);
  out[i++] = __fns(0x8421u, 0, 2);
}

int main() {
  Array<long long> out(24);
  compute<<<1, 1>>>(out.device);
  out.down();
  const long long expected[] = {9,
                                32,
                                8,
                                32,
                                63,
                                500,
                                1,
                                153924928 - 0x0,
                                -2,
                                4294967281ll,
                                15,
                                0x34567880,
                                0x880f0a00,
                                0x1234a005,
                                112 + 7,
                                0 + 40 + 700,
                                70 + 10,
                                -5 + 12 - 14 + 32,
                                0x02008081,
                                0x10ff7f90,
                                0xff00ff00ll,
                                0x04010901,
                                0x7fff8000ll,
                                5};
  for (int i = 0; i < 24; ++i) {
    if (i == 7) continue;
    if (out[i] != expected[i]) std::printf("%d: %llx %llx\n", i, out[i], expected[i]);
    CHECK(out[i] == expected[i]);
  }
  CHECK(out[7] == static_cast<long long>((0x80f0a005ull * 0x12345678ull) >> 32));
  return ok();
}
