// SPDX-License-Identifier: Apache-2.0
// Inline PTX: special registers, loads and stores in every state space and width, atomics.
#include "check.cuh"

__device__ unsigned lane() {
  unsigned r;
  asm("mov.u32 %0, %%laneid;" : "=r"(r));
  return r;
}
__device__ unsigned below() {
  unsigned r;
  asm volatile("mov.u32 %0, %lanemask_lt;" : "=r"(r));
  return r;
}

__global__ void special(unsigned* out) {
  unsigned x;
  asm("mov.u32 %0, %%tid.x;" : "=r"(x));
  out[threadIdx.x] = x == threadIdx.x && lane() == threadIdx.x % 32;
}
__global__ void move(const float4* from, float4* to, unsigned* counter, int* sums) {
  __shared__ float kept[64];
  float4 v;
  asm volatile("ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(from + threadIdx.x));
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(kept)) + 4 * threadIdx.x;
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(address), "f"(v.x) : "memory");
  asm volatile("st.shared.f32 [%0+128], %1;" ::"r"(address), "f"(v.y) : "memory");
  asm volatile("bar.sync 0;" ::: "memory");
  float x, y;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(address) : "memory");
  asm volatile("ld.volatile.shared.f32 %0, [%1+128];" : "=f"(y) : "r"(address) : "memory");
  asm volatile("st.global.cs.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to + threadIdx.x), "f"(y),
               "f"(x), "f"(v.w), "f"(v.z)
               : "memory");
  asm volatile("red.global.add.u32 [%0], %1;" ::"l"(counter), "r"(1u) : "memory");
  unsigned old;
  asm volatile("atom.global.max.u32 %0, [%1], %2;"
               : "=r"(old)
               : "l"(counter + 1), "r"(threadIdx.x)
               : "memory");
  asm volatile("membar.gl;" ::: "memory");
  asm volatile("prefetch.global.L2 [%0];" ::"l"(from));
  int s;
  asm volatile("redux.sync.add.s32 %0, %1, 0xffffffff;"
               : "=r"(s)
               : "r"(static_cast<int>(threadIdx.x)));
  sums[threadIdx.x] = s;
  unsigned got;
  asm volatile("shfl.sync.bfly.b32 %0, %1, 1, 0x1f, 0xffffffff;" : "=r"(got) : "r"(threadIdx.x));
  if (got != (threadIdx.x ^ 1)) sums[threadIdx.x] = -1;
}

int main() {
  Array<unsigned> flags(64);
  special<<<1, 64>>>(flags.device);
  flags.down();
  for (int i = 0; i < 64; ++i) CHECK(flags[i] == 1);
  Array<float4> from(32), to(32);
  Array<unsigned> counter(2);
  Array<int> sums(32);
  for (int i = 0; i < 32; ++i) from[i] = make_float4(i, i + 100, i + 200, i + 300);
  from.up();
  move<<<1, 32>>>(from.device, to.device, counter.device, sums.device);
  to.down();
  counter.down();
  sums.down();
  for (int i = 0; i < 32; ++i) {
    CHECK(to[i].x == i + 100 && to[i].y == i && to[i].z == i + 300 && to[i].w == i + 200);
    CHECK(sums[i] == 31 * 16);
  }
  CHECK(counter[0] == 32 && counter[1] == 31);
  return ok();
}
