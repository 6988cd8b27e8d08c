// SPDX-License-Identifier: Apache-2.0
// Inline PTX: integer and bit instructions, carries, predicates, local registers, conversions.
#include "check.cuh"

__device__ unsigned add_ptx(unsigned a, unsigned b) {
  unsigned c;
  asm("add.u32 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));
  return c;
}

__global__ void compute(unsigned* out, unsigned long long* wide, float* real) {
  const unsigned a = 0x12345678u + threadIdx.x, b = 0x9abcdef0u;
  unsigned r;
  out[0] = add_ptx(a, b);
  asm volatile("lop3.b32 %0, %1, %2, %3, 0xe8;" : "=r"(r) : "r"(a), "r"(b), "r"(0x0f0f0f0fu));
  out[1] = r;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(0x7531));
  out[2] = r;
  asm("bfe.u32 %0, %1, 4, 8;" : "=r"(r) : "r"(a));
  out[3] = r;
  asm("bfi.b32 %0, %1, %2, 8, 4;" : "=r"(r) : "r"(0xfu), "r"(0u));
  out[4] = r;
  asm("shf.l.wrap.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(4));
  out[5] = r;
  asm("{\n\t"
      ".reg .pred p;\n\t"
      "setp.gt.u32 p, %1, %2;\n\t"
      "selp.u32 %0, 1, 2, p;\n\t"
      "@p add.u32 %0, %0, 10;\n\t"
      "@!p add.u32 %0, %0, 20;\n\t"
      "}"
      : "=r"(r)
      : "r"(a), "r"(b));
  out[6] = r;
  unsigned low, high;
  asm("add.cc.u32 %0, %2, %4;\n\t"
      "addc.u32 %1, %3, %5;"
      : "=r"(low), "=r"(high)
      : "r"(0xffffffffu), "r"(1u), "r"(2u), "r"(3u));
  out[7] = low;
  out[8] = high;
  unsigned long long w;
  asm("mul.wide.u32 %0, %1, %2;" : "=l"(w) : "r"(a), "r"(b));
  wide[0] = w;
  asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(w) : "r"(a), "r"(b), "l"(5ull));
  wide[1] = w;
  asm("mov.b64 %0, {%1, %2};" : "=l"(w) : "r"(a), "r"(b));
  wide[2] = w;
  asm("mov.b64 {%0, %1}, %2;" : "=r"(low), "=r"(high) : "l"(w));
  out[9] = low == a && high == b;
  int s;
  asm("cvt.rni.s32.f32 %0, %1;" : "=r"(s) : "f"(2.5f));
  out[10] = static_cast<unsigned>(s);
  asm("mad.lo.s32 %0, %1, %2, %0;" : "+r"(s) : "r"(-3), "r"(4));
  out[11] = static_cast<unsigned>(s);
  asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;"
      : "=r"(out[12])
      : "r"(0x01ff0305u), "r"(0x02010205u), "r"(10u));
  float f;
  asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(f) : "f"(1.5f), "f"(2.0f), "f"(0.25f));
  real[0] = f;
  asm("ex2.approx.f32 %0, %1;" : "=f"(f) : "f"(3.0f));
  real[1] = f;
  asm("mov.b32 %0, 0f3F800000;" : "=f"(f));
  real[2] = f;
  asm("mov.b32 %[to], %[from];" : [to] "=f"(f) : [from] "r"(0x40490fdbu));
  real[3] = f;
}

int main() {
  Array<unsigned> out(13);
  Array<unsigned long long> wide(3);
  Array<float> real(4);
  compute<<<1, 1>>>(out.device, wide.device, real.device);
  out.down();
  wide.down();
  real.down();
  const unsigned a = 0x12345678u, b = 0x9abcdef0u, c = 0x0f0f0f0fu;
  CHECK(out[0] == a + b);
  CHECK(out[1] == ((a & b) | (a & c) | (b & c)));
  CHECK(out[2] == 0x9ade1256u);
  CHECK(out[3] == 0x67u);
  CHECK(out[4] == 0xf00u);
  CHECK(out[5] == (b << 4 | a >> 28));
  CHECK(out[6] == 22);
  CHECK(out[7] == 1u && out[8] == 5u);
  CHECK(wide[0] == static_cast<unsigned long long>(a) * b);
  CHECK(wide[1] == static_cast<unsigned long long>(a) * b + 5);
  CHECK(wide[2] == (static_cast<unsigned long long>(b) << 32 | a));
  CHECK(out[9] == 1 && out[10] == 2 && static_cast<int>(out[11]) == -10);
  CHECK(out[12] == 1 + 254 + 1 + 0 + 10);
  CHECK(real[0] == 3.25f && real[1] == 8.0f && real[2] == 1.0f && real[3] == 3.14159274f);
  return ok();
}
