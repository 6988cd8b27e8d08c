// SPDX-License-Identifier: Apache-2.0
// A table of keys into which warps insert: all lanes look at a window of slots plainly, vote on
// which is empty, and one claims it. What they saw is found out by the comparison: no race.
#include "check.cuh"

constexpr int slots = 256;

__global__ void insert(const int* keys, int* table, int count) {
  const int lane = threadIdx.x % 32;
  const int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const int warps = gridDim.x * blockDim.x / 32;
  for (int k = warp; k < count; k += warps) {
    const int key = keys[k];
    int window = key * 7 % slots / 32 * 32;
    for (bool done = false; !done;) {
      const int seen = table[window + lane];
      if (__any_sync(0xffffffffu, seen == key)) break;
      const unsigned empty = __ballot_sync(0xffffffffu, seen == 0);
      if (empty == 0) {
        window = (window + 32) % slots;
        continue;
      }
      const int chosen = __ffs(static_cast<int>(empty)) - 1;
      int old = 0;
      if (lane == chosen) old = atomicCAS(table + window + lane, 0, key);
      old = __shfl_sync(0xffffffffu, old, chosen);
      done = old == 0 || old == key;
    }
  }
}

int main() {
  Array<int> keys(120), table(slots);
  for (int i = 0; i < 120; ++i) keys[i] = 1 + i % 60;
  keys.up();
  insert<<<3, 64>>>(keys.device, table.device, 120);
  table.down();
  int seen[61] = {};
  for (int i = 0; i < slots; ++i) {
    if (table[i] != 0) ++seen[table[i]];
  }
  for (int key = 1; key <= 60; ++key) CHECK(seen[key] == 1);
  return ok();
}
