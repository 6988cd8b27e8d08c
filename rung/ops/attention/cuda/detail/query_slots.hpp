// SPDX-License-Identifier: Apache-2.0
// Query slots: tiles of a head's queries over all batch elements. With packed queries the host does
// not know how many tiles the batch elements have, launches blocks for the most that are possible,
// and each block finds its tile.
#pragma once

#include <cstdint>

#include "rung/core/integer.hpp"
#include "rung/device/collectives.hpp"
#include "rung/ops/attention/cuda/detail/heads.hpp"

namespace rung::attention_cuda::inline RUNG_TARGET {

/// A tile of queries of batch element b, which has `tiles` tiles. No tile: b is the number of batch
/// elements.
struct QueryTile {
  std::int64_t b;
  int tile, tiles;
};

/// Returns the tile of `rows` packed queries in a slot; called by whole warps. A warp adds up the
/// tiles of 32 batch elements at a time, so that offsets may be in any order.
template <class T>
__device__ __forceinline__ QueryTile packed_tile_at(const Heads<T>& p, std::int64_t slot,
                                                    int rows) {
  const int lane = lane_of_thread();
  std::int64_t before = 0;  // tiles of earlier batch elements
#pragma unroll 1
  for (std::int64_t first = 0; first < p.batch(); first += warp_size) {
    const std::int64_t b = first + lane;
    const int tiles =
        b < p.batch() ? static_cast<int>(ceil_div(p.query_rows(b).count, std::int64_t{rows})) : 0;
    const int end = warp_scan_inclusive(tiles, [](int a, int c) { return a + c; });
    const unsigned beyond = __ballot_sync(all_lanes, slot < before + end);
    if (beyond != 0) {
      const int of_slot = __ffs(static_cast<int>(beyond)) - 1;
      const auto tile = static_cast<int>(slot - before) - shuffle(end - tiles, of_slot);
      return {first + of_slot, tile, shuffle(tiles, of_slot)};
    }
    before += shuffle(end, warp_size - 1);
  }
  return {p.batch(), 0, 0};
}

}  // namespace rung::attention_cuda::inline RUNG_TARGET
