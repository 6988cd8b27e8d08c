// SPDX-License-Identifier: Apache-2.0
// A look before an atomic maximum spares work, but it is a plain read of what others update.
#include "../programs/check.cuh"

__global__ void largest(const int* in, int* best) {
  const int value = in[64 * blockIdx.x + threadIdx.x];
#ifdef BUG
  if (*best < value) atomicMax(best, value);  // expect: race
#else
  if (*static_cast<volatile int*>(best) < value) atomicMax(best, value);
#endif
}

int main() {
  Array<int> in(128), best(1);
  for (int i = 0; i < 128; ++i) in[i] = i * 37 % 101;
  in.up();
  largest<<<2, 64>>>(in.device, best.device);
  best.down();
  CHECK(best[0] == 100);
  return ok();
}
