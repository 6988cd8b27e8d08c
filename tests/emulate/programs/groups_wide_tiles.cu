// SPDX-License-Identifier: Apache-2.0
// Tiles larger than a warp: ranks, barriers, values from any thread, reductions, two sizes at once.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include "check.cuh"

namespace cg = cooperative_groups;

template <int Size>
__global__ void tiles(int* sums, int* maxima, int* neighbors, int* votes) {
  __shared__ cg::block_tile_memory<1024> memory;
  __shared__ int values[1024];
  auto block = cg::this_thread_block(memory);
  auto tile = cg::tiled_partition<Size>(block);
  const int i = block.thread_rank();
  const int first = static_cast<int>(tile.meta_group_rank() * tile.size());
  sums[i] = cg::reduce(tile, i, cg::plus<int>());
  maxima[i] = cg::reduce(tile, i % 7 == 3 ? i : 0, [](int a, int b) { return a > b ? a : b; });
  neighbors[i] = tile.shfl(i, static_cast<int>(tile.thread_rank()) + 33);
  votes[i] = tile.any(i == first + Size - 1) && !tile.any(i < first) && tile.all(i >= first) &&
             !tile.all(i != first + 40);
  // As many rounds as the tile's number: its barrier is not the block's.
  for (unsigned round = 0; round <= tile.meta_group_rank(); ++round) {
    values[i] = static_cast<int>(round) + i;
    tile.sync();
    const int other = values[first + (i - first + 50) % Size];
    if (other != static_cast<int>(round) + first + (i - first + 50) % Size) votes[i] = 0;
    tile.sync();
  }
}

template <int Size>
void run() {
  const int n = 1024;
  Array<int> sums(n), maxima(n), neighbors(n), votes(n);
  tiles<Size><<<1, n>>>(sums.device, maxima.device, neighbors.device, votes.device);
  sums.down();
  maxima.down();
  neighbors.down();
  votes.down();
  for (int i = 0; i < n; ++i) {
    const int first = i / Size * Size;
    CHECK(sums[i] == Size * first + Size * (Size - 1) / 2);
    int last = first + Size - 1;
    while (last % 7 != 3) --last;
    CHECK(maxima[i] == last);
    CHECK(neighbors[i] == first + (i - first + 33) % Size);
    CHECK(votes[i] == 1);
  }
}

/// A block that does not fill its last tile, and its halves in step with tiles of another size.
__global__ void uneven(int* sums) {
  auto block = cg::this_thread_block();
  auto wide = cg::tiled_partition<256>(block);
  auto narrow = cg::tiled_partition<64>(block);
  const int i = block.thread_rank();
  const int whole = cg::reduce(wide, 1, cg::plus<int>());
  sums[i] = 1000 * whole + cg::reduce(narrow, 1, cg::plus<int>());
}

int main() {
  run<64>();
  run<128>();
  run<256>();
  run<512>();
  Array<int> sums(360);
  uneven<<<1, 360>>>(sums.device);
  sums.down();
  for (int i = 0; i < 360; ++i) CHECK(sums[i] == (i < 256 ? 256064 : i < 320 ? 104064 : 104040));
  return ok();
}
