// SPDX-License-Identifier: Apache-2.0
// The last rounds of a ring commit empty groups; otherwise "all but one group" admits the copy
// that is read.
#include <cstdint>

#include "../programs/check.cuh"

constexpr int stages = 3, tiles = 5;

__global__ void sums(const int4* in, int* out) {
  __shared__ int4 kept[stages][32];
  const int t = threadIdx.x;
  const auto load = [&](int i) {
    const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(&kept[i % stages][t]));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"  // expect: race
                 ::"r"(to),
                 "l"(in + 32 * i + t));
  };
  for (int i = 0; i < stages - 1; ++i) {
    load(i);
    asm volatile("cp.async.commit_group;");
  }
  int sum = 0;
  for (int i = 0; i < tiles; ++i) {
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    sum += kept[i % stages][31 - t].x;  // expect: race
    if (i + stages - 1 < tiles) {
      load(i + stages - 1);
#ifdef BUG
      asm volatile("cp.async.commit_group;");
#endif
    }
#ifndef BUG
    asm volatile("cp.async.commit_group;");
#endif
  }
  out[t] = sum;
}

int main() {
  Array<int4> in(32 * tiles);
  Array<int> out(32);
  for (int i = 0; i < 32 * tiles; ++i) in[i].x = i;
  in.up();
  sums<<<1, 32>>>(in.device, out.device);
#ifndef BUG
  out.down();
  for (int t = 0; t < 32; ++t) CHECK(out[t] == 320 + 5 * (31 - t));
#endif
  return ok();
}
