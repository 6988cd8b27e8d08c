// SPDX-License-Identifier: Apache-2.0
// The kernel of the warp-specialised ring: the buffers, and what each squad does with them.
//
// Squads wait for each other by four barriers a buffer: full, totalled, ready, empty. Each squad
// sees the tiles of the block in the same order, and a tile of number -1 tells it to leave.
#pragma once

#include "rung/device/ptx_bulk_copy.hpp"
#include "rung/device/ptx_thread.hpp"
#include "rung/ops/scan/cuda_look_back.hpp"

namespace rung::inline RUNG_TARGET::scan_cuda::ring {

/// Two blocks a multiprocessor: 160 KiB of tiles, of which some 100 are on their way.
struct Tuning {
  int stages = 5;
  int tile_bytes = 16 << 10;
  int scan_warps = 8;  // 4 rows of 512 bytes each
  int sum_warps = 4;   // 8 rows each
};
inline constexpr Tuning tuning{};
inline constexpr int scan_threads = tuning.scan_warps * warp_size;
inline constexpr int sum_threads = tuning.sum_warps * warp_size;
inline constexpr int look_warp = tuning.scan_warps + tuning.sum_warps;
inline constexpr int load_warp = look_warp + 1;
inline constexpr int threads = (load_warp + 1) * warp_size;
enum NamedBarrier : int { scan_squad = 1, sum_squad = 2 };

template <class Policy>
using ScanTile = Tile<Policy, scan_threads, 4>;

/// A buffer of the ring, and what the squads tell each other of the tile in it.
template <class S>
struct Stage {
  ptx::MemoryBarrier full;      // loaded
  ptx::MemoryBarrier totalled;  // `total` is known
  ptx::MemoryBarrier ready;     // `before` is known
  ptx::MemoryBarrier empty;     // nobody needs it any more
  std::int64_t tile;            // -1: there are no more
  S total;
  S before;
  S of_scan_warp[tuning.scan_warps];
  S of_sum_warp[tuning.sum_warps];
};
template <class S>
struct Shared {
  alignas(128) unsigned char data[tuning.stages][tuning.tile_bytes];
  Stage<S> stage[tuning.stages];
};

/// body(stage, data, parity) for one tile after another until there are none.
template <class S, class Body>
__device__ __forceinline__ void for_each_tile(Shared<S>& memory, const Body& body) {
  for (int at = 0, parity = 0;;) {
    Stage<S>& stage = memory.stage[at];
    ptx::mbarrier_wait(stage.full, static_cast<unsigned>(parity));
    if (stage.tile < 0) return;
    body(stage, memory.data[at], static_cast<unsigned>(parity));
    if (++at == tuning.stages) {
      at = 0;
      parity ^= 1;
    }
  }
}

template <class Policy, class T = typename Policy::Element, class S = typename Policy::State>
__device__ __forceinline__ void load_tiles(Shared<S>& memory, const Lines<T>& lines,
                                           const Tree<S>& tree, unsigned* ticket) {
  constexpr int size = static_cast<int>(sizeof(T));
  const int lane = lane_of_thread();
  const std::int64_t count = tree.tiles * tree.lines;
  for (int at = 0, parity = 1;;) {
    Stage<S>& stage = memory.stage[at];
    // The first round finds every buffer empty: a wait for the phase before the first returns.
    ptx::mbarrier_wait(stage.empty, static_cast<unsigned>(parity));
    unsigned taken = 0;
    if (lane == 0) taken = atomicAdd(ticket, 1u);
    const std::int64_t tile = shuffle(taken, 0);
    if (lane == 0) stage.tile = tile < count ? tile : -1;
    if (tile >= count) {
      if (lane == 0) ptx::mbarrier_arrive(stage.full);
      return;
    }
    const std::int64_t line = tile / tree.tiles;
    const std::int64_t first = tile % tree.tiles * ScanTile<Policy>::elements;
    const T* from = lines.x_of(line) + first;
    const std::int64_t valid =
        lines.n - first < ScanTile<Policy>::elements ? lines.n - first : ScanTile<Policy>::elements;
    // Bulk copies move 16 bytes at a time: the line's last few elements are brought by hand, and
    // nothing undefined is left behind them.
    const int bulk = static_cast<int>(valid) * size / 16 * 16;
    T* to = reinterpret_cast<T*>(memory.data[at]);
    for (int i = bulk / size + lane; i < ScanTile<Policy>::elements; i += warp_size) {
      to[i] = i < valid ? from[i] : zero<T>();
    }
    __syncwarp();
    if (lane == 0) {
      ptx::mbarrier_arrive_expect(stage.full, static_cast<unsigned>(bulk));
      if (bulk > 0) ptx::bulk_load(to, from, static_cast<unsigned>(bulk), stage.full);
    }
    if (++at == tuning.stages) {
      at = 0;
      parity ^= 1;
    }
  }
}

template <class Policy, class S = typename Policy::State>
__device__ __forceinline__ void sum_tiles(Shared<S>& memory, const Policy& policy) {
  using T = typename Policy::Element;
  constexpr int N = pack_size<T>;
  constexpr int rows = tuning.tile_bytes / 16 / sum_threads;
  const auto combine = [&](const S& a, const S& b) { return policy.combine(a, b); };
  const int lane = lane_of_thread();
  const int warp = static_cast<int>(threadIdx.x) / warp_size - tuning.scan_warps;
  for_each_tile(memory, [&](Stage<S>& stage, const unsigned char* data, unsigned) {
    const T* mine = reinterpret_cast<const T*>(data) + (warp * rows * warp_size + lane) * N;
    S total = policy.identity;
#pragma unroll
    for (int row = 0; row < rows; ++row) {
      const auto pack = load_aligned(mine + row * warp_size * N);
      total = combine(total, warp_reduce(policy.total(pack, 0), combine));
    }
    if (lane == 0) stage.of_sum_warp[warp] = total;
    ptx::barrier_sync(sum_squad, sum_threads);
    if (warp == 0 && lane == 0) {
      total = policy.identity;
      for (const S& one : stage.of_sum_warp) total = combine(total, one);
      stage.total = total;
      ptx::mbarrier_arrive(stage.totalled);
    }
    __syncwarp();
    if (lane == 0) ptx::mbarrier_arrive(stage.empty);
  });
}

template <class Policy, class S = typename Policy::State>
__device__ __forceinline__ void look_ahead(Shared<S>& memory, const Policy& policy,
                                           const Tree<S>& tree) {
  for_each_tile(memory, [&](Stage<S>& stage, const unsigned char*, unsigned parity) {
    ptx::mbarrier_wait(stage.totalled, parity);
    const S before =
        look_back(policy, tree, stage.tile / tree.tiles, stage.tile % tree.tiles, stage.total);
    if (lane_of_thread() == 0) {
      stage.before = before;
      ptx::mbarrier_arrive(stage.ready);
      ptx::mbarrier_arrive(stage.empty);
    }
    __syncwarp();
  });
}

template <class Policy, class T = typename Policy::Element, class S = typename Policy::State>
__device__ __forceinline__ void scan_tiles(Shared<S>& memory, const Policy& policy,
                                           const Lines<T>& lines, const Tree<S>& tree,
                                           bool exclusive) {
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
  ScanTile<Policy> tile;
  for_each_tile(memory, [&](Stage<S>& stage, const unsigned char* data, unsigned parity) {
#pragma unroll
    for (int row = 0; row < 4; ++row) {
      tile.pack[row] = load_aligned(reinterpret_cast<const T*>(data) + tile.position(row));
      tile.heads[row] = 0;
    }
    const S warp_total = tile.scan_warp(policy);
    if (lane_of_thread() == 0) stage.of_scan_warp[warp] = warp_total;
    ptx::barrier_sync(scan_squad, scan_threads);
    S before = policy.identity;
    for (int w = 0; w < warp; ++w) before = policy.combine(before, stage.of_scan_warp[w]);
    ptx::mbarrier_wait(stage.ready, parity);
    before = policy.combine(stage.before, before);
    const std::int64_t line = stage.tile / tree.tiles;
    const std::int64_t first = stage.tile % tree.tiles * ScanTile<Policy>::elements;
    __syncwarp();  // all lanes have read it
    if (lane_of_thread() == 0) ptx::mbarrier_arrive(stage.empty);
    tile.finish(policy, before, lines.y_of(line), 1, first, lines.n, exclusive);
  });
}

template <class Policy>
__global__ void __launch_bounds__(threads, 2)
    scan_ring(Policy policy, Lines<typename Policy::Element> lines,
              Tree<typename Policy::State> tree, unsigned* ticket, bool exclusive) {
  using State = typename Policy::State;
  auto& memory = shared<Shared<State>>();
  if (threadIdx.x == 0) {
    for (Stage<State>& stage : memory.stage) {
      ptx::mbarrier_init(stage.full, 1);
      ptx::mbarrier_init(stage.totalled, 1);
      ptx::mbarrier_init(stage.ready, 1);
      ptx::mbarrier_init(stage.empty, tuning.scan_warps + tuning.sum_warps + 1);
    }
    ptx::mbarrier_fence_init();
  }
  __syncthreads();
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
  if (warp < tuning.scan_warps) {
    scan_tiles(memory, policy, lines, tree, exclusive);
  } else if (warp < look_warp) {
    sum_tiles(memory, policy);
  } else if (warp == look_warp) {
    look_ahead(memory, policy, tree);
  } else {
    load_tiles<Policy>(memory, lines, tree, ticket);
  }
}

}  // namespace rung::inline RUNG_TARGET::scan_cuda::ring
