// SPDX-License-Identifier: Apache-2.0
// Lanes with equal values find each other.
#include "check.cuh"

__global__ void match(const int* in, unsigned* any, unsigned* all, int* agreed) {
  const int t = threadIdx.x;
  any[t] = __match_any_sync(0xffffffffu, in[t]);
  all[t] = __match_all_sync(0xffffffffu, in[t] / 100, &agreed[t]);
  if (t < 8) any[t] |= __match_any_sync(0xffu, 3.5) << 8;
}

int main() {
  Array<int> in(32), agreed(32);
  Array<unsigned> any(32), all(32);
  for (int i = 0; i < 32; ++i) in[i] = i % 4;
  in.up();
  match<<<1, 32>>>(in.device, any.device, all.device, agreed.device);
  any.down();
  all.down();
  agreed.down();
  for (int i = 8; i < 32; ++i) CHECK(any[i] == 0x11111111u << i % 4);
  CHECK(any[3] == (0x88888888u | 0xff00u));
  for (int i = 0; i < 32; ++i) CHECK(all[i] == 0xffffffffu && agreed[i] == 1);
  in[9] = 250;
  in.up();
  match<<<1, 32>>>(in.device, any.device, all.device, agreed.device);
  all.down();
  agreed.down();
  CHECK(all[0] == 0 && agreed[31] == 0);
  return ok();
}
