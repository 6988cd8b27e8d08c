// SPDX-License-Identifier: Apache-2.0
// st.relaxed publishes nothing; st.release does.
#include "../programs/check.cuh"

#ifdef BUG
#define ORDER "relaxed"
#else
#define ORDER "release"
#endif

__global__ void hand_over(int* data, int* flag, int* out) {
  if (blockIdx.x == 0) {
    *data = 42;  // expect: race
    asm volatile("st." ORDER ".gpu.global.s32 [%0], 1;" ::"l"(flag) : "memory");
  } else {
    int seen;
    do {
      asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    } while (seen == 0);
    *out = *data;  // expect: race
  }
}

int main() {
  Array<int> data(1), flag(1), out(1);
  hand_over<<<2, 1>>>(data.device, flag.device, out.device);
  return ok();
}
