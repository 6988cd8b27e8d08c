// SPDX-License-Identifier: Apache-2.0
// The lanes that are together in a branch; partitions by label and predicate.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include "check.cuh"

namespace cg = cooperative_groups;

__device__ int aggregated_add(int* counter) {
  cg::coalesced_group active = cg::coalesced_threads();
  int first = 0;
  if (active.thread_rank() == 0) first = atomicAdd(counter, static_cast<int>(active.size()));
  return active.shfl(first, 0) + static_cast<int>(active.thread_rank());
}
__global__ void use(int* counter, int* slots, int* sums) {
  const int t = threadIdx.x;
  if (t % 3 == 0) slots[aggregated_add(counter)] = t;
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  auto labeled = cg::labeled_partition(warp, t % 4);
  sums[t] = cg::reduce(labeled, t, cg::plus<int>());
  auto halves = cg::binary_partition(warp, t < 10);
  sums[32 + t] = static_cast<int>(halves.size());
}

int main() {
  Array<int> counter(1), slots(32), sums(64);
  use<<<1, 32>>>(counter.device, slots.device, sums.device);
  counter.down();
  slots.down();
  sums.down();
  CHECK(counter[0] == 11);
  int seen = 0;
  for (int i = 0; i < 11; ++i) {
    CHECK(slots[i] % 3 == 0);
    seen |= 1 << slots[i] / 3;
  }
  CHECK(seen == (1 << 11) - 1);
  for (int t = 0; t < 32; ++t) {
    int sum = 0;
    for (int i = t % 4; i < 32; i += 4) sum += i;
    CHECK(sums[t] == sum && sums[32 + t] == (t < 10 ? 10 : 22));
  }
  return ok();
}
