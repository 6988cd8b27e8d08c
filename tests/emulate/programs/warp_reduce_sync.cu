// SPDX-License-Identifier: Apache-2.0
// __reduce_*_sync over any lanes.
#include "check.cuh"

__global__ void reduce(unsigned* out, int* signed_out) {
  const unsigned t = threadIdx.x;
  const unsigned mine = t < 12 ? 0x00000fffu : 0xfffff000u;
  out[t] = __reduce_add_sync(mine, t);
  out[32 + t] = __reduce_min_sync(mine, t + 5) + 100 * __reduce_max_sync(mine, t);
  out[64 + t] = __reduce_and_sync(mine, t | 64u) ^ __reduce_or_sync(mine, t) ^
                (__reduce_xor_sync(mine, 1u << t) << 1);
  signed_out[t] =
      __reduce_min_sync(0xffffffffu, 3 - static_cast<int>(t)) + __reduce_add_sync(0xffffffffu, -1);
}

int main() {
  Array<unsigned> out(96);
  Array<int> signed_out(32);
  reduce<<<1, 32>>>(out.device, signed_out.device);
  out.down();
  signed_out.down();
  CHECK(out[5] == 66 && out[20] == 430);
  CHECK(out[32] == 5 + 1100 && out[63] == 17 + 3100);
  CHECK(out[64] == (64u ^ 15u ^ (0xfffu << 1)));
  CHECK(signed_out[9] == -28 - 32);
  return ok();
}
