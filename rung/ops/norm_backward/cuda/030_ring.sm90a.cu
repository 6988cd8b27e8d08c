// SPDX-License-Identifier: Apache-2.0
// norm_backward / ring
//
// Idea     Persistent blocks are divided into teams of as many warps as a row needs. x and dy
//          arrive in a shared-memory ring by bulk copies and are read from there twice, so that
//          registers hold only the sums of dgamma and dbeta for a thread's 32 columns.
// Changes  against registers_fused: rows are in flight while others are computed; the teams of a
//          block add up their sums, so only one set per SM remains; rows of up to 16384 elements.
// Cost     Compulsory traffic, and the blocks' sums once.
// Limits   Contiguous rows of full, aligned 16-byte packs: up to 16384 elements, 8192 of f64.
// Source   The structure of norm's ring.
#include <cstdint>

#include "rung/core/bounds.hpp"
#include "rung/device/ptx/bulk_copy.hpp"
#include "rung/device/ptx/thread.hpp"
#include "rung/ops/norm/shared/cuda/parts.hpp"
#include "rung/ops/norm_backward/cuda/detail/norm_backward.hpp"

namespace rung {
namespace {

using namespace norm_backward_cuda;

using norm_cuda::join;
using norm_cuda::kept_packs;
using norm_cuda::part_of_lanes;
using norm_cuda::WarpPart;

constexpr int ring_threads = 512;  // 128 registers each
constexpr int max_stages = 4;
constexpr int max_warps = ring_threads / 32;

template <class W>
struct RingShared {
  WarpPart<W> parts[max_warps];
  Means<W> means[2][max_warps];                    // of this row and the previous one
  ptx::MemoryBarrier full[max_warps][max_stages];  // one ring per team
};

/// A thread's view of its team's rows in the ring, and of gamma. `whole`: rows use all threads of a
/// team and gamma is of x's type, so accesses need no branches.
template <class T, bool whole>
struct TeamRows {
  using W = Accumulator<T>;
  static constexpr int width = vector_width<T>;
  const NormGradientArguments<T>& call;
  int row_packs;
  Pack<T, width>* rows;  // x and dy of each stage
  ptx::MemoryBarrier* full;
  const unsigned char* gamma;

  /// Returns the index of the thread's pack p in a row; each warp owns adjacent packs.
  [[nodiscard]] static __device__ __forceinline__ int index(int p) {
    const int thread = static_cast<int>(threadIdx.x);
    return thread / 32 * (32 * kept_packs<T>)+thread % 32 + p * 32;
  }
  /// Returns the number of packs from the warp's first one to the row's end.
  [[nodiscard]] __device__ __forceinline__ int left() const {
    return row_packs - static_cast<int>(threadIdx.x) / 32 * (32 * kept_packs<T>);
  }
  [[nodiscard]] __device__ __forceinline__ bool has(int p) const {
    return whole || index(p) < row_packs;
  }
  /// Starts the copies of a row; called by one thread after all reads of the stage.
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
    return widen<W, T>(load_words(rows[2 * stage * row_packs + index(p)].at));
  }
  [[nodiscard]] __device__ __forceinline__ Pack<W, width> dy(int stage, int p) const {
    return widen<W, T>(load_words(rows[(2 * stage + 1) * row_packs + index(p)].at));
  }
  [[nodiscard]] __device__ __forceinline__ Pack<W, width> weights(int p) const {
    if (!whole && call.wide_gamma) {
      return load_wide<width>(reinterpret_cast<const W*>(gamma) + index(p) * width);
    }
    return widen<W, T>(load_words(reinterpret_cast<const T*>(gamma) + index(p) * width));
  }
};

__device__ __forceinline__ int thread_of_block() {
  return static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
}
__device__ __forceinline__ int threads_of_block() {
  return static_cast<int>(blockDim.x * blockDim.y);
}

/// Copies gamma to shared memory in its own type; ones if there is none.
template <class T>
__device__ __forceinline__ void copy_gamma(const NormGradientArguments<T>& call,
                                           unsigned char* to) {
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

/// Synchronizes the threads of a team.
__device__ __forceinline__ void team_sync() {
  if (blockDim.x == 32) {
    __syncwarp();
  } else {
    ptx::barrier_sync(static_cast<int>(threadIdx.y) + 1, static_cast<int>(blockDim.x));
  }
}

/// Returns the scale of a row, with mean and rstd recomputed from the row in the ring.
template <class T, bool whole, class W = Accumulator<T>>
__device__ __forceinline__ Scale<W> scale_again(const TeamRows<T, whole>& mine, int stage,
                                                WarpPart<W>* parts) {
  const auto x = [&](int p) { return mine.has(p) ? mine.x(stage, p) : Pack<W, vector_width<T>>{}; };
  const WarpPart<W> part = part_of_lanes<kept_packs<T>, vector_width<T>, W>(
      mine.call, 32, mine.left(), [&](int p) { return mine.has(p); }, x);
  const int warps = static_cast<int>(blockDim.x) / 32;
  if (warps == 1) return scale_about(mine.call, part.center, part.moments);
  if (lane_of_thread() == 0) parts[threadIdx.x / 32] = part;
  team_sync();  // parts are rewritten only after the barrier of the means
  W center = 0;
  const Moments<W> moments = join(mine.call, parts, warps, center);
  return scale_about(mine.call, center, moments);
}

/// Writes the block's sums: the teams' sums reuse the ring's memory and are added in team order.
template <class T, bool whole, class W = Accumulator<T>>
__device__ __forceinline__ void add_up(const TeamRows<T, whole>& mine, void* ring,
                                       const Pack<W, vector_width<T>> (&dgamma)[kept_packs<T>],
                                       const Pack<W, vector_width<T>> (&dbeta)[kept_packs<T>]) {
  const int n = static_cast<int>(mine.call.n);
  auto* const sums = static_cast<W*>(ring);
  __syncthreads();  // no copies are in flight any more
#pragma unroll
  for (int p = 0; p < kept_packs<T>; ++p) {
    if (!mine.has(p)) continue;
    W* const to = sums + 2 * n * static_cast<int>(threadIdx.y) + mine.index(p) * vector_width<T>;
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

/// Launch geometry: teams per block, and stages per team.
struct RingPlan {
  int threads;  // per team
  int teams;
  int stages;
  bool whole;  // see TeamRows
  std::size_t shared_bytes;
};

template <class T>
inline RingPlan plan_of(const NormGradientArguments<T>& call, const Context& context) {
  using W = Accumulator<T>;
  const auto n = static_cast<std::size_t>(call.n);
  RingPlan plan{};
  plan.threads = static_cast<int>(round_up(
      larger(ceil_div(call.n, std::int64_t{kept_packs<T> * vector_width<T>}), std::int64_t{1}),
      32));
  plan.whole =
      !call.wide_gamma && call.n == std::int64_t{plan.threads} * kept_packs<T> * vector_width<T>;
  const std::size_t fixed =
      sizeof(RingShared<W>) +
      round_up(n * (call.wide_gamma ? sizeof(W) : sizeof(T)), std::size_t{16});
  const std::size_t stage_bytes = 2 * n * sizeof(T);
  const std::size_t most = context.info().shared_per_block - fixed;
  // Use few warps and only the bytes in flight that hide the memory latency; more of either is
  // slower. 16-bit elements need twice the arithmetic per byte.
  const std::size_t under_way = sizeof(T) == 2 ? 64 * 1024 : 96 * 1024;
  const int warps = plan.threads / 32;
  const int enough_warps = sizeof(T) != 2 ? 4 : warps == 1 ? 8 : 16;
  plan.teams = larger(enough_warps / warps, 1);
  while ((plan.teams + 1) * warps <= max_warps &&
         plan.teams * max_stages * stage_bytes < under_way) {
    ++plan.teams;
  }
  // The teams' sums must fit in the ring's memory.
  while (plan.teams > 1 && plan.teams * larger(stage_bytes, 2 * n * sizeof(W)) > most) {
    --plan.teams;
  }
  const std::size_t team_bytes = larger<std::size_t>(stage_bytes, 16) * plan.teams;
  plan.stages =
      static_cast<int>(clamped<std::size_t>(smaller(most, under_way) / team_bytes, 1, max_stages));
  if (plan.stages == 1 && 2 * team_bytes <= most) plan.stages = 2;
  plan.shared_bytes = fixed + larger(plan.stages * team_bytes, 2 * n * sizeof(W) * plan.teams);
  return plan;
}
constexpr std::int64_t rows_a_chunk = 8;

template <class T, bool whole>
__global__ void __launch_bounds__(ring_threads, 1)
    norm_backward_ring(NormGradientArguments<T> call, int stages) {
  using W = Accumulator<T>;
  constexpr int width = vector_width<T>;
  constexpr int packs = kept_packs<T>;
  auto& scratch = shared<RingShared<W>>();
  const int thread = static_cast<int>(threadIdx.x);
  const int team = static_cast<int>(threadIdx.y);
  const int teams = static_cast<int>(blockDim.y);
  const int warps = static_cast<int>(blockDim.x) / 32;
  const int row_packs = static_cast<int>(call.n / width);

  auto* const gamma = reinterpret_cast<unsigned char*>(&scratch + 1);  // precedes the ring
  const int n = static_cast<int>(call.n);
  copy_gamma(call, gamma);
  auto* const ring =
      reinterpret_cast<Pack<T, width>*>(gamma + (call.wide_gamma ? sizeof(W) : sizeof(T)) * n);
  const TeamRows<T, whole> mine{call, row_packs, ring + team * stages * 2 * row_packs,
                                scratch.full[team], gamma};
  const std::int64_t step = std::int64_t{gridDim.x} * teams;
  const std::int64_t first = std::int64_t{blockIdx.x} * teams + team;
  if (thread == 0) {
    for (int stage = 0; stage < stages; ++stage) ptx::mbarrier_init(mine.full[stage], 1);
    ptx::mbarrier_fence_init();
    for (int stage = 0; stage < stages; ++stage) mine.fetch(first + stage * step, stage);
  }

  Pack<W, width> dgamma[packs];
  Pack<W, width> dbeta[packs];
#pragma unroll
  for (int p = 0; p < packs; ++p) {
#pragma unroll
    for (int i = 0; i < width; ++i) dgamma[p][i] = dbeta[p][i] = 0;
  }
  const auto scale_at = [&](std::int64_t row) {
    std::int64_t at[5] = {};
    if (row >= call.rows || call.rstd == nullptr) return Scale<W>{};
    call.lines.rows.offsets(row, at);
    return given_scale(call, at);
  };
  Scale<W> next = scale_at(first);
  __syncthreads();  // gamma and the mbarriers are initialized

  int stage = 0;
  unsigned parity = 0;
  int turn = 0;
  for (std::int64_t row = first; row < call.rows; row += step) {
    Scale<W> scale = next;
    next = scale_at(row + step);
    ptx::mbarrier_wait(mine.full[stage], parity);
    if (call.rstd == nullptr) {
      scale = scale_again(mine, stage, scratch.parts + team * warps);
    }
    Means<W> means{};
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      if (!mine.has(p)) continue;
      const Pack<W, width> x = mine.x(stage, p);
      const Pack<W, width> dy = mine.dy(stage, p);
      const Pack<W, width> weights = mine.weights(p);
#pragma unroll
      for (int i = 0; i < width; ++i) {
        const W z = (x[i] - scale.center) * scale.rstd + scale.shift;
        const W g = dy[i] * weights[i];
        means.g += g;
        means.gz += g * z;
        dgamma[p][i] += dy[i] * z;
        dbeta[p][i] += dy[i];
      }
    }
    means = warp_reduce(means, AddMeans{});
    Means<W>* const of_warp = scratch.means[turn] + team * warps;
    turn ^= 1;
    if (warps > 1 && lane_of_thread() == 0) of_warp[thread / 32] = means;
    team_sync();  // x and dy are read again below, not kept
    if (warps > 1) {
      // All warps have read the previous row twice: reuse its stage.
      if (thread == 0 && row != first && stages > 1) {
        mine.fetch(row + (stages - 1) * step, stage == 0 ? stages - 1 : stage - 1);
      }
      const int lane = lane_of_thread();
      means = warp_reduce(lane < warps ? of_warp[lane] : Means<W>{}, AddMeans{});
    }
    const W all_g = call.layer ? means.g * call.factors.part * scale.rstd : W{0};
    const W all_gz = means.gz * call.factors.part * scale.rstd;
    T* const dx_row = call.dx + call.lines.rows.template offset<NormBackward::row_dx>(row);
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      if (!mine.has(p)) continue;
      const Pack<W, width> x = mine.x(stage, p);
      const Pack<W, width> dy = mine.dy(stage, p);
      const Pack<W, width> weights = mine.weights(p);
      Pack<W, width> dx;
#pragma unroll
      for (int i = 0; i < width; ++i) {
        const W z = (x[i] - scale.center) * scale.rstd + scale.shift;
        dx[i] = dy[i] * scale.rstd * weights[i] - all_g - z * all_gz;
      }
      if constexpr (sizeof(T) == 2) {
        store_words_streaming(dx_row + mine.index(p) * width, narrow<T>(dx));
      } else {
        store_words(dx_row + mine.index(p) * width, narrow<T>(dx));
      }
    }
    if (warps == 1 || stages == 1) {
      team_sync();
      if (thread == 0) mine.fetch(row + stages * step, stage);
    }
    if (++stage == stages) {
      stage = 0;
      parity ^= 1;
    }
  }
  if (call.sums != nullptr) add_up(mine, ring, dgamma, dbeta);
}

/// Returns the number of blocks: at most one per SM, each with at least eight rows per team.
std::int64_t blocks_of(std::int64_t rows, int teams, const Context& context) {
  return clamped(ceil_div(rows, rows_a_chunk * teams), std::int64_t{1},
                 std::int64_t{context.info().sms});
}

Support supports(const NormBackward::Args& args, const Context& context) {
  if (context.info().compute_capability < 90) {
    return unsupported("bulk copies need compute capability 9.0");
  }
  if (const Support packs = require_whole_packs(args); !packs) return packs;
  const std::int64_t n = NormBackward::lines_of(args).columns.size();
  const std::int64_t most = visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
    return std::int64_t{kept_packs<T> * vector_width<T> * ring_threads};
  });
  if (n > most) return unsupported("the row is longer than registers hold sums for");
  return supported;
}

Work work(const NormBackward::Args& args, const Context& context) {
  const std::int64_t rows = NormBackward::lines_of(args).rows.size();
  const RingPlan plan = visit<float, double, f16, bf16>(
      args.x.dtype, [&]<class T>() { return plan_of(call_of<T>(args), context); });
  const RowBlock block{.threads = plan.threads, .rows = plan.teams};
  const Work all = row_work(rows, block, 1, type_path(args.x.dtype), 128);
  return with_finish(args, in_turns(blocks_of(rows, plan.teams, context), all));
}

void run(const NormBackward::Args& args, Context& context) {
  visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
    NormGradientArguments<T> call = call_of<T>(args);
    const RingPlan plan = plan_of(call, context);
    call.chunks = blocks_of(call.rows, plan.teams, context);
    if (wants_sums(args)) {
      call.sums = static_cast<Accumulator<T>*>(context.workspace(
          static_cast<std::size_t>(2 * call.chunks * call.n) * sizeof(Accumulator<T>)));
    }
    launch(context,
           {.grid = call.chunks,
            .block = {plan.threads, plan.teams},
            .shared_bytes = plan.shared_bytes},
           plan.whole ? norm_backward_ring<T, true> : norm_backward_ring<T, false>, call,
           plan.stages);
    if (call.sums != nullptr) launch_finish(context, call);
  });
}

const Rung<NormBackward> self{{.name = "ring",
                               .step = 30,
                               .after = "registers_fused",
                               .backend = device_backend,
                               .supports = supports,
                               .passes = {.loads = 1, .stores = 1},
                               .work = work,
                               .run = run}};

}  // namespace
}  // namespace rung
