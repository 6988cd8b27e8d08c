// SPDX-License-Identifier: Apache-2.0
// Tiles of a warp: ranks, shuffles, votes, reductions and scans.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include "check.cuh"

namespace cg = cooperative_groups;

template <int Size>
__global__ void tiles(int* sums, int* scans, int* votes) {
  cg::thread_block block = cg::this_thread_block();
  auto tile = cg::tiled_partition<Size>(block);
  const int i = block.thread_rank();
  sums[i] = cg::reduce(tile, i, cg::plus<int>());
  scans[i] = cg::exclusive_scan(tile, 1);
  int sum = i;
  for (int offset = tile.size() / 2; offset > 0; offset /= 2) sum += tile.shfl_down(sum, offset);
  const int same = tile.shfl(sum, 0) == sums[i];
  votes[i] = tile.all(same) && tile.any(i % Size == 1 || Size == 1) &&
             tile.ballot(tile.thread_rank() == 0) == 1u &&
             tile.meta_group_rank() == static_cast<unsigned>(i / Size);
  tile.sync();
}

template <int Size>
void run() {
  Array<int> sums(96), scans(96), votes(96);
  tiles<Size><<<1, 96>>>(sums.device, scans.device, votes.device);
  sums.down();
  scans.down();
  votes.down();
  for (int i = 0; i < 96; ++i) {
    const int first = i / Size * Size;
    CHECK(sums[i] == Size * first + Size * (Size - 1) / 2);
    CHECK(scans[i] == i % Size);
    CHECK(votes[i] == 1);
  }
}

int main() {
  run<1>();
  run<2>();
  run<4>();
  run<8>();
  run<16>();
  run<32>();
  return ok();
}
