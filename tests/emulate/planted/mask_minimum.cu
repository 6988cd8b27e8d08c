// SPDX-License-Identifier: Apache-2.0
// A minimum over fewer lanes than a warp has leaves out what absent lanes would bring.
#include "../programs/check.cuh"

__global__ void least(const int* in, int* out, int n) {
  const int lane = threadIdx.x;
  if (lane >= n) return;
  const unsigned mask = (1u << n) - 1;
  int value = in[lane];
  for (int d = 8; d > 0; d /= 2) {
    const int other = __shfl_down_sync(mask, value, d);  // expect: warp_sync
#ifdef BUG
    value = min(value, other);
#else
    if (lane + d < n) value = min(value, other);
#endif
  }
  if (lane == 0) out[0] = value;
}

int main() {
  Array<int> in(11), out(1);
  for (int i = 0; i < 11; ++i) in[i] = 5 + (i * 7) % 11;
  in.up();
  least<<<1, 32>>>(in.device, out.device, 11);
#ifndef BUG
  out.down();
  CHECK(out[0] == 5);
#endif
  return ok();
}
