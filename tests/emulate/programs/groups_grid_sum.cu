// SPDX-License-Identifier: Apache-2.0
// A reduction by the whole grid: tiles, the block, grid.sync().
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include "check.cuh"

namespace cg = cooperative_groups;
__global__ void sum(const int* in, int* parts, int* out, int n) {
  cg::grid_group grid = cg::this_grid();
  cg::thread_block block = cg::this_thread_block();
  auto tile = cg::tiled_partition<32>(block);
  __shared__ int sums[4];
  int mine = 0;
  for (int i = static_cast<int>(grid.thread_rank()); i < n; i += static_cast<int>(grid.size()))
    mine += in[i];
  mine = cg::reduce(tile, mine, cg::plus<int>());
  if (tile.thread_rank() == 0) sums[tile.meta_group_rank()] = mine;
  block.sync();
  if (block.thread_rank() == 0)
    parts[block.group_index().x] = sums[0] + sums[1] + sums[2] + sums[3];
  grid.sync();
  if (grid.thread_rank() == 0) {
    int total = 0;
    for (unsigned i = 0; i < gridDim.x; ++i) total += parts[i];
    *out = total;
  }
}

int main() {
  int n = 3000;
  Array<int> in(n), parts(6), out(1);
  for (int i = 0; i < n; ++i) in[i] = i;
  in.up();
  void* arguments[] = {&in.device, &parts.device, &out.device, &n};
  CUDA(cudaLaunchCooperativeKernel((const void*)sum, 6, 128, arguments));
  out.down();
  CHECK(out[0] == n * (n - 1) / 2);
  return ok();
}
