// SPDX-License-Identifier: Apache-2.0
// red.cta is atomic to its block alone.
#include "../programs/check.cuh"

#ifdef BUG
#define SCOPE "cta"
#else
#define SCOPE "gpu"
#endif

__global__ void count(int* counter) {
  asm volatile("red.relaxed." SCOPE ".global.add.s32 [%0], 1;" ::"l"(counter));  // expect: race
}

int main() {
  Array<int> counter(1);
  count<<<3, 32>>>(counter.device);
  return ok();
}
