// SPDX-License-Identifier: Apache-2.0
// The order that CUDA 12.8's atomic functions are given.
#include "../programs/check.cuh"

#ifdef BUG
#define ORDER __NV_ATOMIC_RELAXED
#else
#define ORDER __NV_ATOMIC_RELEASE
#endif

__global__ void hand_over(int* data, int* flag, int* out) {
  if (blockIdx.x == 0) {
    *data = 42;  // expect: race
    __nv_atomic_store_n(flag, 1, ORDER, __NV_THREAD_SCOPE_DEVICE);
  } else {
    while (__nv_atomic_load_n(flag, __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_DEVICE) == 0) {
    }
    *out = *data;  // expect: race
  }
}

int main() {
  Array<int> data(1), flag(1), out(1);
  hand_over<<<2, 1>>>(data.device, flag.device, out.device);
  return ok();
}
