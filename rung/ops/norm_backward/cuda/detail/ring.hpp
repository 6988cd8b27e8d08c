// SPDX-License-Identifier: Apache-2.0
// norm_backward's rows in a ring in shared memory: how blocks are cut into teams, and what a thread
// of a team sees of it.
#pragma once

#include <cstdint>

#include "rung/core/bounds.hpp"
#include "rung/device/ptx_bulk_copy.hpp"
#include "rung/device/ptx_thread.hpp"
#include "rung/ops/norm/cuda/detail/parts.hpp"
#include "rung/ops/norm/cuda/detail/widen.hpp"
#include "rung/ops/norm_backward/cuda/detail/norm_backward.hpp"

namespace rung::norm_backward_cuda::inline RUNG_TARGET {

using norm_cuda::join;
using norm_cuda::kept_packs;
using norm_cuda::narrow;
using norm_cuda::pack_width;
using norm_cuda::part_of_lanes;
using norm_cuda::WarpPart;
using norm_cuda::widen;

inline constexpr int ring_threads = 512;  // of 128 registers each
inline constexpr int most_stages = 4;
inline constexpr int most_warps = ring_threads / 32;

template <class W>
struct RingShared {
  WarpPart<W> parts[most_warps];
  Means<W> means[2][most_warps];                     // of this row and the one before
  ptx::MemoryBarrier full[most_warps][most_stages];  // of each team
};

/// A team's rows in the ring, and gamma, as a thread sees them. `whole`: rows fill all threads of a
/// team, and gamma is of x's type; no pack waits for a branch then.
template <class T, bool whole>
struct TeamRows {
  using W = Accumulator<T>;
  static constexpr int width = pack_width<T>;
  const Call<T>& call;
  int row_packs;
  Pack<T, width>* rows;  // x and dy of each stage
  ptx::MemoryBarrier* full;
  const unsigned char* gamma;

  /// Each warp has neighbouring packs.
  [[nodiscard]] static __device__ __forceinline__ int index(int p) {
    const int thread = static_cast<int>(threadIdx.x);
    return thread / 32 * (32 * kept_packs<T>)+thread % 32 + p * 32;
  }
  /// Packs of a row from the warp's first on.
  [[nodiscard]] __device__ __forceinline__ int left() const {
    return row_packs - static_cast<int>(threadIdx.x) / 32 * (32 * kept_packs<T>);
  }
  [[nodiscard]] __device__ __forceinline__ bool has(int p) const {
    return whole || index(p) < row_packs;
  }
  /// Starts copying a row: by one thread, when nobody reads the stage any more.
  __device__ __forceinline__ void fetch(std::int64_t row, int stage) const {
    if (row >= call.rows) return;
    const auto bytes = static_cast<unsigned>(row_packs) * 16;
    Pack<T, width>* const x = rows + 2 * stage * row_packs;
    ptx::mbarrier_arrive_expect(full[stage], 2 * bytes);
    ptx::bulk_load(x, call.x + call.lines.rows.template offset<NormBackward::row_x>(row), bytes,
                   full[stage]);
    ptx::bulk_load(x + row_packs,
                   call.dy + call.lines.rows.template offset<NormBackward::row_dy>(row), bytes,
                   full[stage]);
  }
  [[nodiscard]] __device__ __forceinline__ Pack<W, width> x(int stage, int p) const {
    return widen(load_raw<width>(rows[2 * stage * row_packs + index(p)].at));
  }
  [[nodiscard]] __device__ __forceinline__ Pack<W, width> dy(int stage, int p) const {
    return widen(load_raw<width>(rows[(2 * stage + 1) * row_packs + index(p)].at));
  }
  [[nodiscard]] __device__ __forceinline__ Pack<W, width> weights(int p) const {
    if (!whole && call.wide_gamma) {
      return load_wide<width>(reinterpret_cast<const W*>(gamma) + index(p) * width);
    }
    return widen(load_raw<width>(reinterpret_cast<const T*>(gamma) + index(p) * width));
  }
};

__device__ __forceinline__ int thread_of_block() {
  return static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
}
__device__ __forceinline__ int threads_of_block() {
  return static_cast<int>(blockDim.x * blockDim.y);
}

/// gamma to shared memory, as it is; ones where there is none.
template <class T>
__device__ __forceinline__ void copy_gamma(const Call<T>& call, unsigned char* to) {
  using W = Accumulator<T>;
  const int n = static_cast<int>(call.n);
  for (int i = thread_of_block(); i < n; i += threads_of_block()) {
    if (call.wide_gamma) {
      reinterpret_cast<W*>(to)[i] = gamma_at(call, i);
    } else {
      reinterpret_cast<T*>(to)[i] = convert<T>(gamma_at(call, i));
    }
  }
}

/// A barrier of the threads of a row.
__device__ __forceinline__ void team_sync() {
  if (blockDim.x == 32) {
    __syncwarp();
  } else {
    ptx::barrier_sync(static_cast<int>(threadIdx.y) + 1, static_cast<int>(blockDim.x));
  }
}

/// mean and rstd, computed again from the row in the ring.
template <class T, bool whole, class W = Accumulator<T>>
__device__ __forceinline__ Scale<W> scale_again(const TeamRows<T, whole>& mine, int stage,
                                                WarpPart<W>* parts) {
  const auto x = [&](int p) { return mine.has(p) ? mine.x(stage, p) : Pack<W, pack_width<T>>{}; };
  const WarpPart<W> part = part_of_lanes<kept_packs<T>, pack_width<T>, W>(
      mine.call.layer, 32, mine.left(), [&](int p) { return mine.has(p); }, x);
  const int warps = static_cast<int>(blockDim.x) / 32;
  if (warps == 1) return computed_scale(mine.call, part.center, part.moments);
  if (lane_of_thread() == 0) parts[threadIdx.x / 32] = part;
  team_sync();  // read before the barrier of the means, behind which it is written again
  W center = 0;
  const Moments<W> moments = join(mine.call, parts, warps, center);
  return computed_scale(mine.call, center, moments);
}

/// The block's sums: its teams' meet where the ring was, and are added up in their order.
template <class T, bool whole, class W = Accumulator<T>>
__device__ __forceinline__ void add_up(const TeamRows<T, whole>& mine, void* ring,
                                       const Pack<W, pack_width<T>> (&dgamma)[kept_packs<T>],
                                       const Pack<W, pack_width<T>> (&dbeta)[kept_packs<T>]) {
  const int n = static_cast<int>(mine.call.n);
  auto* const sums = static_cast<W*>(ring);
  __syncthreads();  // nothing is under way any more
#pragma unroll
  for (int p = 0; p < kept_packs<T>; ++p) {
    if (!mine.has(p)) continue;
    W* const to = sums + 2 * n * static_cast<int>(threadIdx.y) + mine.index(p) * pack_width<T>;
    store_wide(to, dgamma[p]);
    store_wide(to + n, dbeta[p]);
  }
  __syncthreads();
  for (int i = thread_of_block(); i < 2 * n; i += threads_of_block()) {
    W sum = 0;
    for (int team = 0; team < static_cast<int>(blockDim.y); ++team) sum += sums[2 * n * team + i];
    mine.call.sums[std::int64_t{blockIdx.x} * 2 * n + i] = sum;
  }
}

/// Teams of a block, and rows of each under way.
struct RingPlan {
  int threads;  // of a team
  int teams;
  int stages;
  bool whole;  // see TeamRows
  std::size_t shared_bytes;
};

template <class T>
inline RingPlan plan_of(const Call<T>& call, const Context& context) {
  using W = Accumulator<T>;
  const auto n = static_cast<std::size_t>(call.n);
  RingPlan plan{};
  plan.threads = static_cast<int>(round_up(
      larger(ceil_div(call.n, std::int64_t{kept_packs<T> * pack_width<T>}), std::int64_t{1}), 32));
  plan.whole =
      !call.wide_gamma && call.n == std::int64_t{plan.threads} * kept_packs<T> * pack_width<T>;
  const std::size_t fixed =
      sizeof(RingShared<W>) +
      round_up(n * (call.wide_gamma ? sizeof(W) : sizeof(T)), std::size_t{16});
  const std::size_t stage_bytes = 2 * n * sizeof(T);
  const std::size_t most = context.info().shared_per_block - fixed;
  // Few warps, and no more under way than memory needs: more of either is slower. Elements of 16
  // bits are twice the arithmetic.
  const std::size_t under_way = sizeof(T) == 2 ? 64 * 1024 : 96 * 1024;
  const int warps = plan.threads / 32;
  const int enough_warps = sizeof(T) != 2 ? 4 : warps == 1 ? 8 : 16;
  plan.teams = larger(enough_warps / warps, 1);
  while ((plan.teams + 1) * warps <= most_warps &&
         plan.teams * most_stages * stage_bytes < under_way) {
    ++plan.teams;
  }
  // The teams' sums take the ring's place.
  while (plan.teams > 1 && plan.teams * larger(stage_bytes, 2 * n * sizeof(W)) > most) {
    --plan.teams;
  }
  const std::size_t team_bytes = larger<std::size_t>(stage_bytes, 16) * plan.teams;
  plan.stages =
      static_cast<int>(clamped<std::size_t>(smaller(most, under_way) / team_bytes, 1, most_stages));
  if (plan.stages == 1 && 2 * team_bytes <= most) plan.stages = 2;
  plan.shared_bytes = fixed + larger(plan.stages * team_bytes, 2 * n * sizeof(W) * plan.teams);
  return plan;
}

}  // namespace rung::norm_backward_cuda::inline RUNG_TARGET
