// SPDX-License-Identifier: Apache-2.0
// CUDA 12.8's atomic functions: every operation, a flag by release and acquire, types of any size.
#include "check.cuh"

struct alignas(8) Pair {
  int first, second;
};

__global__ void change(int* counts, unsigned long long* wide, float* sum, unsigned char* narrow) {
  const int i = static_cast<int>(threadIdx.x + blockIdx.x * blockDim.x);
  __nv_atomic_fetch_add(&counts[0], 2, __NV_ATOMIC_RELAXED);
  __nv_atomic_fetch_sub(&counts[1], 1, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
  __nv_atomic_fetch_min(&counts[2], i, __NV_ATOMIC_RELAXED);
  __nv_atomic_fetch_max(&counts[3], i, __NV_ATOMIC_RELAXED);
  __nv_atomic_fetch_or(&wide[0], 1ull << (i % 64), __NV_ATOMIC_RELAXED);
  __nv_atomic_fetch_and(&wide[1], ~(1ull << (i % 64)), __NV_ATOMIC_RELAXED);
  __nv_atomic_fetch_xor(&wide[2], 1ull << (i % 64), __NV_ATOMIC_RELAXED);
  __nv_atomic_fetch_add(sum, 0.5f, __NV_ATOMIC_RELAXED);
  __nv_atomic_fetch_add(narrow, 1, __NV_ATOMIC_RELAXED);
}

__global__ void both(Pair* pair) {  // two counters as one word
  Pair seen, next;
  __nv_atomic_load(pair, &seen, __NV_ATOMIC_RELAXED);
  do {
    next = {seen.first + 1, seen.second - 1};
  } while (!__nv_atomic_compare_exchange(pair, &seen, &next, false, __NV_ATOMIC_ACQ_REL,
                                         __NV_ATOMIC_RELAXED));
}

__global__ void message(int* text, int* flag, int* read) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    text[0] = 42;
    __nv_atomic_store_n(flag, 1, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_DEVICE);
  } else {
    while (__nv_atomic_load_n(flag, __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_DEVICE) == 0) {
    }
    *read = text[0];
  }
}

__global__ void hand_on(int* places, int* got) {  // each takes what another has left
  got[threadIdx.x] = __nv_atomic_exchange_n(places, static_cast<int>(threadIdx.x) + 1,
                                            __NV_ATOMIC_SEQ_CST, __NV_THREAD_SCOPE_BLOCK);
}

int main() {
  Array<int> counts(4), flag(3), got(64);
  Array<unsigned long long> wide(3);
  Array<float> sum(1);
  Array<unsigned char> narrow(4);
  Array<Pair> pair(1);
  counts[1] = 1000;
  counts[2] = 77;
  wide[1] = ~0ull;
  counts.up();
  wide.up();
  change<<<4, 64>>>(counts.device, wide.device, sum.device, narrow.device + 1);
  counts.down();
  wide.down();
  sum.down();
  narrow.down();
  CHECK(counts[0] == 512 && counts[1] == 744 && counts[2] == 0 && counts[3] == 255);
  CHECK(wide[0] == ~0ull && wide[1] == 0 && wide[2] == 0);
  CHECK(sum[0] == 128 && narrow[0] == 0 && narrow[1] == 0 && narrow[2] == 0);

  both<<<3, 50>>>(pair.device);
  pair.down();
  CHECK(pair[0].first == 150 && pair[0].second == -150);
  message<<<2, 32>>>(flag.device, flag.device + 1, flag.device + 2);
  flag.down();
  CHECK(flag[2] == 42);
  flag[0] = 0;
  flag.up();
  hand_on<<<1, 64>>>(flag.device, got.device);
  flag.down();
  got.down();
  int left = flag[0];
  for (int i = 0; i < 64; ++i) left += got[i];
  CHECK(left == 64 * 65 / 2);
  return ok();
}
