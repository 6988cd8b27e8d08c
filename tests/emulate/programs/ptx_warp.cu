// SPDX-License-Identifier: Apache-2.0
// Instructions of a warp: votes, shuffles, matches, reductions.
#include "check.cuh"

__global__ void warp(unsigned* out) {
  const unsigned t = threadIdx.x;
  unsigned ballot, shuffled, all, sum, matched, lane, mask;
  asm volatile("{ .reg .pred p; setp.gt.u32 p, %1, 20; vote.sync.ballot.b32 %0, p, 0xffffffff; }"
               : "=r"(ballot)
               : "r"(t));
  asm volatile("shfl.sync.bfly.b32 %0, %1, 3, 31, 0xffffffff;" : "=r"(shuffled) : "r"(t));
  asm volatile(
      "{ .reg .pred p, q; setp.lt.u32 p, %1, 40; vote.sync.all.pred q, p, 0xffffffff; selp.u32 %0, "
      "1, 0, q; }"
      : "=r"(all)
      : "r"(t));
  asm volatile("redux.sync.add.u32 %0, %1, 0xffffffff;" : "=r"(sum) : "r"(t));
  asm volatile("match.any.sync.b32 %0, %1, 0xffffffff;" : "=r"(matched) : "r"(t % 2));
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));
  asm volatile("bar.warp.sync 0xffffffff;");
  out[t] = (ballot == 0xffe00000u) + 2 * (shuffled == (t ^ 3)) + 4 * all + 8 * (sum == 496) +
           16 * (matched == 0x55555555u << t % 2) + 32 * (lane == t) + 64 * (mask == (1u << t) - 1);
}

int main() {
  Array<unsigned> out(32);
  warp<<<1, 32>>>(out.device);
  out.down();
  for (int t = 0; t < 32; ++t) CHECK(out[t] == 127);
  return ok();
}
