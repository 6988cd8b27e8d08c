// SPDX-License-Identifier: Apache-2.0
// Qualifiers in every place: bounds, restrict, inline, noinline, alignment.
#include "check.cuh"

__device__ __noinline__ int slow(int x) { return x + 1; }
static __device__ __forceinline__ int fast(int x) { return x + 2; }
__host__ __device__ constexpr int both(int x) { return 2 * x; }
template <int N>
__global__ void __launch_bounds__(N, 2)
    bounded(int* __restrict__ p, const int* const __restrict__ q) {
  p[threadIdx.x] = slow(q[threadIdx.x]) + fast(both(3));
}
__global__ __launch_bounds__(64) void bounded_too(int* p) { p[threadIdx.x] += 1; }
struct __align__(16) Wide {
  int a;
  float b;
};
static_assert(alignof(Wide) == 16 && sizeof(Wide) == 16 && both(4) == 8);
extern "C" __global__ void plain_name(Wide w, int* p) { p[threadIdx.x] += w.a; }

int main() {
  Array<int> p(64), q(64);
  for (int i = 0; i < 64; ++i) q[i] = i;
  q.up();
  bounded<64><<<1, 64>>>(p.device, q.device);
  bounded_too<<<1, 64>>>(p.device);
  plain_name<<<1, 64>>>(Wide{100, 0.5f}, p.device);
  p.down();
  for (int i = 0; i < 64; ++i) CHECK(p[i] == i + 1 + 8 + 1 + 100);
  return ok();
}
