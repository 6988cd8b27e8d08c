// SPDX-License-Identifier: Apache-2.0
// A function that looks into a table, for a compare-and-swap to find out whether it was right,
// looks plainly at a counter, too: that nothing finds out.
#include "../programs/check.cuh"

__device__ __noinline__ int look(const int* at) { return *at; }  // expect: race

__global__ void insert(int* table, int* count, int* out) {
  const int lane = threadIdx.x;
  const int key = 1 + blockIdx.x;
  for (bool done = false; !done;) {
    const int seen = look(table + lane);
    const unsigned empty = __ballot_sync(0xffffffffu, seen == 0);
    const int chosen = __ffs(static_cast<int>(empty)) - 1;
    int old = 0;
    if (lane == chosen) old = atomicCAS(table + lane, 0, key);
    done = __shfl_sync(0xffffffffu, old, chosen) == 0;
  }
  if (lane == 0) {
    atomicAdd(count, 1);  // expect: race
#ifdef BUG
    out[blockIdx.x] = look(count);
#else
    out[blockIdx.x] = atomicAdd(count, 0);
#endif
  }
}

int main() {
  Array<int> table(32), count(1), out(8);
  insert<<<8, 32>>>(table.device, count.device, out.device);
  return ok();
}
