// SPDX-License-Identifier: Apache-2.0
// Two counting semaphores around a ring of slots, filled by one block and emptied by another.
#include "check.cuh"

__global__ void hand_over(int* slots, int* full, int* empty, int* out, int n) {
  if (blockIdx.x == 0) {
    for (int i = 0; i < n; i++) {
      while (atomicAdd(empty, 0) <= 0) {
      }
      atomicSub(empty, 1);
      slots[i % 4] = i * i;  // expect: race
#ifndef BUG
      __threadfence();
#endif
      atomicAdd(full, 1);
    }
  } else {
    for (int i = 0; i < n; i++) {
      while (atomicAdd(full, 0) <= 0) {
      }
      atomicSub(full, 1);
      out[i] = slots[i % 4];  // expect: race
      __threadfence();
      atomicAdd(empty, 1);
    }
  }
}

int main() {
  Array<int> slots(4), full(1), empty(1), out(16);
  empty[0] = 4;
  empty.up();
  hand_over<<<2, 1>>>(slots.device, full.device, empty.device, out.device, out.size);
  out.down();
  for (int i = 0; i < out.size; ++i) CHECK(out[i] == i * i);
  return ok();
}
// says: which updates full
