// SPDX-License-Identifier: Apache-2.0
// Block groups: ranks, sizes, generic groups, tiles of a size known at run time.
#include <cooperative_groups.h>

#include "check.cuh"

using namespace cooperative_groups;

__device__ int sum_group(thread_group g, int* scratch, int v) {
  const int lane = g.thread_rank();
  for (int i = g.size() / 2; i > 0; i /= 2) {
    scratch[lane] = v;
    g.sync();
    if (lane < i) v += scratch[lane + i];
    g.sync();
  }
  return v;
}
__global__ void use(int* out) {
  __shared__ int scratch[64];
  thread_block block = this_thread_block();
  const int rank = block.thread_rank();
  const int total = sum_group(block, scratch, rank);
  if (rank == 0) out[0] = total;
  block.sync();
  thread_group tile = tiled_partition(block, 16);
  const int part = sum_group(tile, scratch + rank / 16 * 16, rank);
  if (tile.thread_rank() == 0) out[1 + rank / 16] = part;
  if (rank == 63) {
    out[5] = block.group_index().x + block.thread_index().y + block.size();
    out[6] = block.group_dim().x;
  }
}

int main() {
  Array<int> out(7);
  use<<<1, dim3(16, 4)>>>(out.device);
  out.down();
  CHECK(out[0] == 2016);
  for (int i = 0; i < 4; ++i) CHECK(out[1 + i] == 16 * 16 * i + 120);
  CHECK(out[5] == 0 + 3 + 64 && out[6] == 16);
  return ok();
}
