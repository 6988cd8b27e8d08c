// SPDX-License-Identifier: Apache-2.0
// A block waits for a flag that a later one sets.
#include "check.cuh"

__global__ void hand_over(volatile int* flag, int* data, int* out) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    while (*flag == 0) {
    }
    __threadfence();
    *out = *reinterpret_cast<volatile int*>(data);
  } else if (blockIdx.x == 1) {
    *reinterpret_cast<volatile int*>(data) = 42;
    __threadfence();
    *flag = 1;
  }
}

int main() {
  Array<int> flag(1), data(1), out(1);
  hand_over<<<2, 32>>>(flag.device, data.device, out.device);
  out.down();
  CHECK(out[0] == 42);
  return ok();
}
