// SPDX-License-Identifier: Apache-2.0
// scan / warp-specialized ring
//
// Idea     warp specialization: one persistent block per SM passes tiles along a ring of buffers in
//          shared memory. One warp issues bulk copies, `stages` ahead; three warps sum a tile each
//          and publish its total; one sums the totals before each tile; sixteen scan and store.
//          Loads never wait for a look-back, nor look-backs for a store.
// Changes  against decoupled_look_back: loads continue while a block waits for its prefix, and
//          every block reads the totals of all tiles: one step from a total to its readers instead
//          of a tree's three. Tiles are scheduled statically. The blocks clear the totals before a
//          grid barrier while their first tiles load, without an extra launch.
// Cost     each element read and written once; each tile is read twice from shared memory. Totals
//          are 8 bytes per tile and block (16 for 8-byte types): under 1 % of the sectors through
//          L2.
// Limits   Hopper; sums without segments, contiguous lines that begin on 16 bytes. Short inputs do
//          not fill the ring.
// Source   D. Merrill & M. Garland 2016 for the look-back; NVIDIA, CUDA C++ Programming Guide, for
//          bulk copies and asynchronous barriers.
#include "rung/core/bounds.hpp"
#include "rung/device/grid.hpp"
#include "rung/device/resident.hpp"
#include "rung/ops/scan/cuda/100_ring.cuh"

namespace rung {
namespace {
using namespace scan_cuda;
using namespace scan_cuda::ring;

template <class Policy>
struct WarpRoles {
  using T = typename Policy::Element;
  using S = typename Policy::State;
  static constexpr int tile_elements = tile_bytes / static_cast<int>(sizeof(T));
  static constexpr int chunk_elements = tile_elements / chunks;
  static constexpr int row_elements = chunk_elements / rows;

  Shared<T, S>& memory;
  const Policy& policy;
  const Lines<T>& lines;
  const Totals<S>& totals;
  std::int64_t own;  // number of tiles of this block

  [[nodiscard]] __device__ __forceinline__ S combine(const S& a, const S& b) const {
    return policy.combine(a, b);
  }

  /// Loads tile `i` of this block into buffer `at`, which must be empty.
  __device__ __forceinline__ void load(std::int64_t i, int at) const {
    const int lane = lane_of_thread();
    Stage<T, S>& stage = memory.stage[at];
    const std::int64_t id = blockIdx.x + i * gridDim.x;
    const std::int64_t line = id / totals.tiles;
    const std::int64_t tile = id - line * totals.tiles;
    const std::int64_t first = tile * tile_elements;
    const std::int64_t left = lines.n - first;
    const T* from = lines.x_of(line) + first;
    const int valid = static_cast<int>(left < tile_elements ? left : tile_elements);
    // Bulk copies move multiples of 16 bytes: the threads copy the remaining bytes. They also zero
    // the rest of the last chunk and, in a buffer's first use, the rest of the tile: sum and scan
    // warps read full tiles before they read `valid`.
    constexpr int size = static_cast<int>(sizeof(T));
    const int bulk = valid * size / 16 * 16;
    T* to = reinterpret_cast<T*>(memory.data[at]);
    if (valid < tile_elements) {
      const int defined = i < stages ? tile_elements : round_up(valid, chunk_elements);
      for (int k = bulk / size + lane; k < defined; k += warp_size) {
        to[k] = k < valid ? from[k] : zero<T>();
      }
      ptx::fence_async_proxy();  // before copies overwrite the buffer
    }
    if (lane == 0) {
      stage.y = lines.y_of(line) + first;
      stage.line = line;
      stage.tile = tile;
      stage.valid = valid;
      ptx::mbarrier_arrive_expect(stage.full, static_cast<unsigned>(bulk));
      if (bulk > 0) ptx::bulk_load(to, from, static_cast<unsigned>(bulk), stage.full);
    } else {
      ptx::mbarrier_arrive(stage.full);
    }
  }
  /// Loads all tiles after the first `stages`, which are already in flight.
  __device__ __forceinline__ void load_rest() const {
    Turn turn{0};
    for (std::int64_t i = stages; i < own; ++i, turn.advance(1)) {
      ptx::mbarrier_wait(memory.stage[turn.at].empty, turn.parity);
      load(i, turn.at);
    }
  }

  /// Returns to lane i the sum over all lanes of values[i % Size]; overwrites the values.
  template <int Count, int Size>
  __device__ __forceinline__ S gather(S (&values)[Size]) const {
    if constexpr (Count > 1) {
      constexpr int half = Count / 2;
      const bool upper = (lane_of_thread() & half) != 0;
#pragma unroll
      for (int i = 0; i < half; ++i) {
        const S sent = upper ? values[i] : values[i + half];
        const S kept = upper ? values[i + half] : values[i];
        values[i] = combine(kept, shuffle_xor(sent, half));
      }
      return gather<half>(values);
    } else {
      S sum = values[0];
#pragma unroll
      for (int distance = Size; distance < warp_size; distance *= 2) {
        sum = combine(sum, shuffle_xor(sum, distance));
      }
      return sum;
    }
  }

  /// Sums tiles: every warp of the role takes whole tiles, so that none waits for another before a
  /// total is published.
  __device__ __forceinline__ void sum() const {
    const int lane = lane_of_thread();
    const int warp = static_cast<int>(threadIdx.x) / warp_size - scan_warps;
    Turn turn{warp};
    for (std::int64_t i = warp; i < own; i += sum_warps, turn.advance(sum_warps)) {
      Stage<T, S>& stage = memory.stage[turn.at];
      ptx::mbarrier_wait(stage.full, turn.parity);
      const T* mine = reinterpret_cast<const T*>(memory.data[turn.at]) + lane * pack_size<T>;
      const int valid = stage.valid;
      S of_chunk[chunks];
#pragma unroll
      for (int c = 0; c < chunks; ++c) {
        const T* from = mine + c * chunk_elements;
        S total = policy.total(load_aligned(from), 0);
#pragma unroll
        for (int row = 1; row < rows; ++row) {
          total = combine(total, policy.total(load_aligned(from + row * row_elements), 0));
        }
        of_chunk[c] = c * chunk_elements < valid ? total : policy.identity;
      }
      const S scanned = warp_scan_inclusive<chunks>(
          gather<chunks>(of_chunk), [&](const S& a, const S& b) { return combine(a, b); });
      if (lane == chunks - 1 && totals.nodes != nullptr) {
        totals.nodes[stage.line * totals.tiles + stage.tile].publish(scanned);
      }
      const S before = shuffle_up(scanned, 1, chunks);
      if (lane < chunks) stage.before_chunk[lane] = lane == 0 ? policy.identity : before;
      ptx::mbarrier_arrive(stage.ready);
      ptx::mbarrier_arrive(stage.empty);
    }
  }

  __device__ __forceinline__ void look_back() const {
    Window<Policy> window;
    S carry = policy.identity;  // sum of all groups before
    std::int64_t line = -1;
    std::int64_t group = 0;
    const auto open = [&] {
      const std::int64_t first = group * group_size;
      const std::int64_t left = totals.tiles - first;
      window.open(policy, totals.nodes + line * totals.tiles + first,
                  static_cast<int>(left < group_size ? left : group_size));
    };
    Turn turn{0};
    for (std::int64_t i = 0; i < own; ++i, turn.advance(1)) {
      Stage<T, S>& stage = memory.stage[turn.at];
      ptx::mbarrier_wait(stage.full, turn.parity);
      S before = policy.identity;
      if (totals.nodes != nullptr) {
        const std::int64_t tile = stage.tile;
        if (stage.line != line) {
          line = stage.line;
          group = 0;
          carry = policy.identity;
          open();
        }
        while ((group + 1) * group_size <= tile) {
          carry = combine(carry, window.before(policy, group_size));
          ++group;
          open();
        }
        before = combine(carry, window.before(policy, static_cast<int>(tile - group * group_size)));
      }
      if (lane_of_thread() == 0) {
        stage.before = before;
        ptx::mbarrier_arrive(stage.ready);
      }
      __syncwarp();
    }
  }

  /// Scans one chunk of each tile per warp.
  __device__ __forceinline__ void scan(bool exclusive) const {
    const int warp = static_cast<int>(threadIdx.x) / warp_size;
    const int place = warp * chunk_elements + lane_of_thread() * pack_size<T>;
    ScanTile<Policy, warp_size, rows> tile;
    Turn turn{0};
    for (std::int64_t i = 0; i < own; ++i, turn.advance(1)) {
      Stage<T, S>& stage = memory.stage[turn.at];
      const T* data = reinterpret_cast<const T*>(memory.data[turn.at]) + place;
      ptx::mbarrier_wait(stage.full, turn.parity);
#pragma unroll
      for (int row = 0; row < rows; ++row) {
        tile.pack[row] = load_aligned(data + row * row_elements);
        tile.heads[row] = 0;
      }
      (void)tile.scan_warp(policy);
      ptx::mbarrier_wait(stage.ready, turn.parity);
      const S before = combine(stage.before, stage.before_chunk[warp]);
      T* y = stage.y + place;
      const int valid = stage.valid;
      ptx::mbarrier_arrive(stage.empty);
#pragma unroll
      for (int row = 0; row < rows; ++row) {
        tile.pack[row] =
            policy.apply(tile.pack[row], 0, combine(before, tile.before[row]), exclusive);
      }
      if ((warp + 1) * chunk_elements <= valid && is_wide_aligned<T, pack_size<T>>(y)) {
#pragma unroll
        for (int row = 0; row < rows; ++row) store_aligned(y + row * row_elements, tile.pack[row]);
      } else {
#pragma unroll
        for (int row = 0; row < rows; ++row) {
          const int left = valid - place - row * row_elements;
          store_pack(y + row * row_elements, 1, left, tile.pack[row]);
        }
      }
    }
  }
};

template <class Policy>
__global__ void __launch_bounds__(threads, 1)
    scan_ring(Policy policy, Lines<typename Policy::Element> lines,
              Totals<typename Policy::State> totals, bool exclusive) {
  using T = typename Policy::Element;
  using S = typename Policy::State;
  auto& memory = shared<Shared<T, S>>();
  if (threadIdx.x == 0) {
    for (Stage<T, S>& stage : memory.stage) {
      ptx::mbarrier_init(stage.full, warp_size);
      ptx::mbarrier_init(stage.ready, warp_size + 1);
      ptx::mbarrier_init(stage.empty, (scan_warps + 1) * warp_size);
    }
    ptx::mbarrier_fence_init();
  }
  __syncthreads();
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
  const std::int64_t own = ceil_div(totals.count - blockIdx.x, gridDim.x);
  const WarpRoles<Policy> roles{memory, policy, lines, totals, own};
  if (warp == load_warp) {
    for (int i = 0; i < stages && i < own; ++i) roles.load(i, i);
  }
  if (totals.nodes != nullptr) {
    // Clears the totals, so that none is mistaken for a total of an earlier launch.
    auto* words = reinterpret_cast<unsigned*>(totals.nodes);
    const std::int64_t count = totals.count * static_cast<std::int64_t>(sizeof(Published<S>) / 4);
    for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < count;
         i += std::int64_t{gridDim.x} * threads) {
      words[i] = 0;
    }
    grid_sync();
  }
  if (warp < scan_warps) {
    roles.scan(exclusive);
  } else if (warp < look_warp) {
    roles.sum();
  } else if (warp == look_warp) {
    roles.look_back();
  } else {
    roles.load_rest();
  }
}

bool on_16_bytes(const Scan::Args& args) {
  const auto size = static_cast<std::int64_t>(size_of(args.x.dtype));
  bool aligned = reinterpret_cast<std::uintptr_t>(args.x.data) % 16 == 0;
  for (int axis = 0; axis < args.lines.rank; ++axis) {
    aligned = aligned && args.lines.strides[0][axis] * size % 16 == 0;
  }
  return aligned;
}

Support supports(const Scan::Args& args, const Context& context) {
  if (context.info().compute_capability < 90) return unsupported("needs compute capability 9.0");
  if (args.y.empty()) return unsupported("nothing to scan");
  if (const Support sum = supports_sum(args); !sum) return sum;
  if (!args.is_contiguous()) return unsupported("takes contiguous lines, forward");
  if (!on_16_bytes(args)) return unsupported("lines do not begin on 16 bytes");
  return supported;
}

template <class Policy>
std::int64_t tiles_of(const Scan::Args& args) {
  return ceil_div(args.length(), WarpRoles<Policy>::tile_elements);
}
template <class Policy>
constexpr std::size_t shared_bytes =
    sizeof(ring::Shared<typename Policy::Element, typename Policy::State>);
template <class Policy>
std::int64_t most_blocks(const Context& context) {
  return resident_blocks(context, scan_ring<Policy>, threads, shared_bytes<Policy>);
}

void run(const Scan::Args& args, Context& context) {
  visit_scanned(args.x.dtype, [&]<class T>() {
    using Policy = Sum<T>;
    using State = typename Policy::State;
    const std::int64_t tiles = tiles_of<Policy>(args);
    Totals<State> totals{nullptr, tiles, tiles * args.lines.size()};
    if (tiles > 1) {
      totals.nodes = static_cast<Published<State>*>(
          context.workspace(static_cast<std::size_t>(totals.count) * sizeof(Published<State>)));
    }
    launch(context,
           {.grid = smaller(totals.count, most_blocks<Policy>(context)),
            .block = threads,
            .shared_bytes = shared_bytes<Policy>,
            .cooperative = true},
           scan_ring<Policy>, sum_policy<T>(), lines_of<T>(args), totals, args.exclusive);
  });
}

Work work(const Scan::Args& args, const Context& context) {
  return visit_scanned(args.x.dtype, [&]<class T>() {
    return in_turns(most_blocks<Sum<T>>(context),
                    line_work(args, tiles_of<Sum<T>>(args) * args.lines.size(), threads, 1));
  });
}

const Rung<Scan> self{{.name = "ring",
                       .step = 100,
                       .after = "decoupled_look_back",
                       .backend = device_backend,
                       .supports = supports,
                       .passes = {.loads = 1, .stores = 1},
                       .work = work,
                       .run = run}};
}  // namespace
}  // namespace rung
