// SPDX-License-Identifier: Apache-2.0
// Who goes by a volatile flag needs a fence before it reads the data, as its writer does: what it
// has read there before may be in its cache.
#include "../programs/check.cuh"

__global__ void hand_over(int* data, volatile int* flag, int* out) {
  if (blockIdx.x == 0) {
    *data = 42;  // expect: race
    __threadfence();
    *flag = 1;
  } else {
    while (*flag == 0) {
    }
#ifndef BUG
    __threadfence();
#endif
    *out = *data;  // expect: race
  }
}

int main() {
  Array<int> data(1), flag(1), out(1);
  hand_over<<<2, 1>>>(data.device, flag.device, out.device);
  return ok();
}
