// SPDX-License-Identifier: Apache-2.0
// Plain reads in front of loops of compare-and-swap are no races, also where the comparison hears
// of what other warps published; and atomic variables of a thread's own are nobody else's.
#include <cuda/atomic>

#include "check.cuh"

__device__ void add_one(int* count) {
  int seen = *count, old;
  do {
    old = seen;
    seen = atomicCAS(count, old, old + 1);
  } while (seen != old);
}

__global__ void count_twice(int* counts) {
  add_one(counts);
  __threadfence();
  atomicAdd(counts + 1, 1);
  add_one(counts);
  __threadfence();
  add_one(counts + 1);
}

__global__ void own(int* out) {
  cuda::atomic<int, cuda::thread_scope_thread> mine{3};
  mine.fetch_add(static_cast<int>(threadIdx.x));
  out[threadIdx.x] = mine.load();
}

int main() {
  Array<int> counts(2), out(32);
  counts.up();
  count_twice<<<4, 64>>>(counts.device);
  counts.down();
  CHECK(counts[0] == 512 && counts[1] == 512);
  own<<<1, 32>>>(out.device);
  out.down();
  for (int i = 0; i < 32; ++i) CHECK(out[i] == i + 3);
  return ok();
}
