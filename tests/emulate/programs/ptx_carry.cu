// SPDX-License-Identifier: Apache-2.0
// Sums and products of many words by the carry flag.
#include "check.cuh"

__device__ void add(unsigned* a, const unsigned* b) {
  asm("add.cc.u32 %0, %0, %4;\n\t"
      "addc.cc.u32 %1, %1, %5;\n\t"
      "addc.cc.u32 %2, %2, %6;\n\t"
      "addc.u32 %3, %3, %7;"
      : "+r"(a[0]), "+r"(a[1]), "+r"(a[2]), "+r"(a[3])
      : "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]));
}
__global__ void numbers(unsigned* out, unsigned long long* wide) {
  unsigned a[4] = {~0u, ~0u, ~0u, 5}, b[4] = {1 + threadIdx.x, 0, 0, 7};
  add(a, b);
  for (int i = 0; i < 4; ++i) out[4 * threadIdx.x + i] = a[i];
  unsigned low, high;
  asm("mul.lo.u32 %0, %2, %3; mul.hi.u32 %1, %2, %3;"
      : "=&r"(low), "=&r"(high)
      : "r"(0xdeadbeefu), "r"(0xcafebabeu + threadIdx.x));
  unsigned long long product;
  asm("mad.wide.u32 %0, %1, %2, %3;"
      : "=l"(product)
      : "r"(0xdeadbeefu), "r"(0xcafebabeu + threadIdx.x), "l"(1ull));
  wide[threadIdx.x] = product - ((static_cast<unsigned long long>(high) << 32) | low);
}

int main() {
  Array<unsigned> out(16);
  Array<unsigned long long> wide(4);
  numbers<<<1, 4>>>(out.device, wide.device);
  out.down();
  wide.down();
  for (unsigned t = 0; t < 4; ++t) {
    CHECK(out[4 * t] == t && out[4 * t + 1] == 0 && out[4 * t + 2] == 0 && out[4 * t + 3] == 13);
    CHECK(wide[t] == 1);
  }
  return ok();
}
