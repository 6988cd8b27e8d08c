// SPDX-License-Identifier: Apache-2.0
// Tiles of a block that are larger than a warp: one barrier per tile, and exchanges of values.
// CUDA's library implements these with barriers and shared memory; the simulator provides
// additional barriers, so that the sixteen named barriers of a block remain available to the
// program.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

#include "rung/simt/scheduler.hpp"

namespace rung::simt {
namespace {

constexpr int smallest = 2 * warp_lanes;

/// The caller's tile: rank of its first thread in the block, and number of threads.
struct TileRange {
  int first, threads;
  int barrier;
};

TileRange tile_of(Worker& here, int threads, const Place& place) {
  const bool power = threads > 0 && (threads & (threads - 1)) == 0;
  if (!power || threads < smallest || threads > 8 * smallest) {
    here.blame("simulated GPU: a tile of " + std::to_string(threads) +
                   " threads, accepted are 64, 128, 256 and 512",
               here.current(), &place);
    here.abandon();
  }
  const Thread& self = here.current();
  const int rank = static_cast<int>(&self - self.block->threads.data());
  // Barrier numbers: tiles of 64 threads first, then half as many tiles of 128, and so on.
  int barrier = named_barriers + rank / threads;
  for (int size = smallest, tiles = 16; size < threads; size *= 2, tiles /= 2) barrier += tiles;
  const int first = rank / threads * threads;
  const int left = static_cast<int>(self.block->threads.size()) - first;
  return {first, std::min(threads, left), barrier};
}

void arrive_and_wait(Worker& here, const TileRange& tile, const char* name, const Place& place) {
  Thread& self = here.current();
  Barrier& barrier = self.block->barriers[tile.barrier];
  barrier.expected = tile.threads;
  barrier.reduction = BlockReduction::none;
  barrier.place = place;
  ++barrier.arrived;
  self.barrier = static_cast<std::uint8_t>(tile.barrier);
  self.wait = Wait::barrier;
  here.try_release(*self.block, tile.barrier);
  here.wait(self.wait, name, place);
}

}  // namespace

void tile_barrier(int threads, Place place) {
  Worker& here = running_worker("a tile's sync");
  arrive_and_wait(here, tile_of(here, threads, place), "a tile's sync", place);
}

void tile_exchange(int threads, const void* mine, std::size_t bytes, TileRanks from, void* result,
                   Place place) {
  static constexpr const char* name = "a tile's exchange";
  Worker& here = running_worker(name);
  const TileRange tile = tile_of(here, threads, place);
  const Block& block = *here.current().block;
  auto& offered = here.current().block->offered;
  offered.resize(block.threads.size());
  offered[static_cast<std::size_t>(&here.current() - block.threads.data())] = mine;
  arrive_and_wait(here, tile, name, place);
  for (int i = 0; i < from.count; ++i) {
    auto* to = static_cast<std::byte*>(result) + static_cast<std::size_t>(i) * bytes;
    const int rank = from.first + i * from.stride;
    if (rank >= 0 && rank < tile.threads) {
      std::memcpy(to,
                  offered[static_cast<std::size_t>(tile.first) + static_cast<std::size_t>(rank)],
                  bytes);
    } else {
      std::memset(to, poison, bytes);
    }
  }
  arrive_and_wait(here, tile, name, place);  // keeps `mine` alive until all threads have read it
}

}  // namespace rung::simt
