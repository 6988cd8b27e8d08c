// SPDX-License-Identifier: Apache-2.0
// Atomic instructions and vectors of memory.
#include "check.cuh"

__global__ void memory(int* counters, const float4* in, float4* out, unsigned long long* best) {
  int old;
  asm volatile("atom.global.add.u32 %0, [%1], 2;" : "=r"(old) : "l"(counters) : "memory");
  asm volatile("red.global.max.s32 [%0], %1;" ::"l"(counters + 1),
               "r"(static_cast<int>(threadIdx.x))
               : "memory");
  asm volatile("red.global.add.f32 [%0], 0f3F000000;" ::"l"(counters + 2) : "memory");
  unsigned long long seen;
  asm volatile("atom.global.exch.b64 %0, [%1], %2;"
               : "=l"(seen)
               : "l"(best + threadIdx.x), "l"(7ull)
               : "memory");
  float4 v;
  asm volatile("ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(in + threadIdx.x));
  asm volatile("st.global.cs.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(out + threadIdx.x), "f"(v.w),
               "f"(v.z), "f"(v.y), "f"(v.x)
               : "memory");
  asm volatile("membar.gl;" ::: "memory");
}

int main() {
  Array<int> counters(3);
  Array<float4> in(32), out(32);
  Array<unsigned long long> best(32);
  for (int i = 0; i < 32; ++i) in[i] = make_float4(i, i + 1, i + 2, i + 3);
  in.up();
  memory<<<1, 32>>>(counters.device, in.device, out.device, best.device);
  counters.down();
  out.down();
  best.down();
  CHECK(counters[0] == 64 && counters[1] == 31 && __int_as_float(counters[2]) == 16);
  for (int i = 0; i < 32; ++i) CHECK(out[i].x == i + 3 && out[i].w == i && best[i] == 7);
  return ok();
}
