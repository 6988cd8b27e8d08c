// SPDX-License-Identifier: Apache-2.0
// norm_backward / ring
//
// Idea     Persistent blocks are divided into teams of as many warps as a row needs. x and dy
//          arrive in a shared-memory ring by bulk copies and are read from there twice, so that
//          registers hold only the sums of dgamma and dbeta for a thread's 32 columns. A block has
//          rows of one offset from a 16-byte pack only, so that its packs have the same columns in
//          all rows; the elements before and after them are one per thread.
// Changes  against registers_fused: rows are in flight while others are computed; the teams of a
//          block add up their sums, so only one set per SM remains; rows of up to 16384 elements.
// Cost     Compulsory traffic, and the blocks' sums once.
// Limits   Contiguous rows of up to 16384 elements, 8192 of f64. Rows that begin or end within a
//          pack: 512 elements at least, at equal distances, at the same offset in x, dy and dx.
// Source   The structure of norm's ring.
#include <cstdint>
#include <type_traits>

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
constexpr int few_threads = 384;   // 168 registers each
constexpr int max_stages = 4;
constexpr int max_warps = ring_threads / 32;

template <class W>
struct RingShared {
  WarpPart<W> parts[max_warps];
  Means<W> means[2][max_warps];                    // of this row and the previous one
  ptx::MemoryBarrier full[max_warps][max_stages];  // one ring per team
};

/// A thread's view of its team's rows in the ring, and of gamma. Whole rows use all threads of a
/// team and have a gamma of x's type, so accesses need no branches.
template <class T, RowKind kind>
struct TeamRows {
  using W = Accumulator<T>;
  static constexpr int width = vector_width<T>;
  const NormGradientArguments<T>& call;
  int head;  // elements before the packs
  int row_packs;
  Pack<T, width>* rows;  // x and dy of each stage
  ptx::MemoryBarrier* full;
  const unsigned char* gamma;  // from element `head` on

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
    return kind == RowKind::whole || index(p) < row_packs;
  }
  /// Starts the copies of a row; called by one thread after all reads of the stage.
  __device__ __forceinline__ void fetch(std::int64_t row, int stage) const {
    if (row >= call.rows) return;
    const auto bytes = static_cast<unsigned>(row_packs) * 16;
    Pack<T, width>* const x = rows + 2 * stage * row_packs;
    ptx::mbarrier_arrive_expect(full[stage], 2 * bytes);
    ptx::bulk_load(x, call.x + call.lines.rows.template offset<NormBackward::row_x>(row) + head,
                   bytes, full[stage]);
    ptx::bulk_load(x + row_packs,
                   call.dy + call.lines.rows.template offset<NormBackward::row_dy>(row) + head,
                   bytes, full[stage]);
  }
  [[nodiscard]] __device__ __forceinline__ Pack<W, width> x(int stage, int p) const {
    return widen<W, T>(load_words(rows[2 * stage * row_packs + index(p)].at));
  }
  [[nodiscard]] __device__ __forceinline__ Pack<W, width> dy(int stage, int p) const {
    return widen<W, T>(load_words(rows[(2 * stage + 1) * row_packs + index(p)].at));
  }
  [[nodiscard]] __device__ __forceinline__ Pack<W, width> weights(int p) const {
    if (kind != RowKind::whole && !std::is_same_v<T, W> && call.wide_gamma) {
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

/// Copies gamma to shared memory in its own type, element i to to[i]; ones if there is none.
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

/// The element before or after a shifted row's packs that this thread owns.
template <class T, class W = Accumulator<T>>
struct SingleElement {
  int count = 0;    // of the row; one per thread, from the team's first on
  int column = -1;  // none
  W gamma = 0;
  T x = zero<T>();  // of the next row
  T dy = zero<T>();
  W dgamma = 0;
  W dbeta = 0;
  template <RowKind kind>
  __device__ __forceinline__ explicit SingleElement(const TeamRows<T, kind>& rows) {
    if constexpr (kind != RowKind::shifted) return;
    const int in_packs = rows.row_packs * rows.width;
    const int thread = static_cast<int>(threadIdx.x);
    count = static_cast<int>(rows.call.n) - in_packs;
    if (thread < count) column = thread < rows.head ? thread : thread + in_packs;
    if (exists()) gamma = gamma_at(rows.call, column);
  }
  [[nodiscard]] __device__ __forceinline__ bool exists() const { return column >= 0; }
  __device__ __forceinline__ void load(const NormGradientArguments<T>& call, std::int64_t row) {
    if (!exists() || row >= call.rows) return;
    x = call.x[call.lines.rows.template offset<NormBackward::row_x>(row) + column];
    dy = call.dy[call.lines.rows.template offset<NormBackward::row_dy>(row) + column];
  }
};

/// Returns the scale of a row, with mean and rstd recomputed from the row in the ring and
/// `single_count` single elements, of which this thread has `single`, if has_single.
template <class T, RowKind kind, class W = Accumulator<T>>
__device__ __forceinline__ Scale<W> scale_again(const TeamRows<T, kind>& mine, int stage,
                                                WarpPart<W>* parts, int single_count,
                                                bool has_single, W single) {
  const auto x = [&](int p) { return mine.has(p) ? mine.x(stage, p) : Pack<W, vector_width<T>>{}; };
  WarpPart<W> part = part_of_lanes<kept_packs<T>, vector_width<T>, W>(
      mine.call, 32, mine.left(), [&](int p) { return mine.has(p); }, x,
      [&](W center, Moments<W>& moments) {
        if (has_single) moments.add(single - center, mine.call.factors.shrink);
      });
  if (kind == RowKind::shifted && threadIdx.x < 32) part.count += static_cast<W>(single_count);
  const int warps = static_cast<int>(blockDim.x) / 32;
  if (warps == 1) return scale_about(mine.call, part.center, part.moments);
  if (lane_of_thread() == 0) parts[threadIdx.x / 32] = part;
  team_sync();  // parts are rewritten only after the barrier of the means
  W center = 0;
  const Moments<W> moments = join(mine.call, parts, warps, center);
  return scale_about(mine.call, center, moments);
}

/// Writes the block's sums: the teams' sums reuse the ring's memory and are added in team order.
template <class T, RowKind kind, class W = Accumulator<T>>
__device__ __forceinline__ void add_up(const TeamRows<T, kind>& mine, void* ring,
                                       const Pack<W, vector_width<T>> (&dgamma)[kept_packs<T>],
                                       const Pack<W, vector_width<T>> (&dbeta)[kept_packs<T>],
                                       const SingleElement<T>& single) {
  const int n = static_cast<int>(mine.call.n);
  auto* const sums = static_cast<W*>(ring);
  W* const of_team = sums + 2 * n * static_cast<int>(threadIdx.y);
  __syncthreads();  // no copies are in flight any more
#pragma unroll
  for (int p = 0; p < kept_packs<T>; ++p) {
    if (!mine.has(p)) continue;
    W* const to = of_team + mine.head + mine.index(p) * vector_width<T>;
    if constexpr (kind == RowKind::shifted) {
      store(to, dgamma[p]);
      store(to + n, dbeta[p]);
    } else {
      store_wide(to, dgamma[p]);
      store_wide(to + n, dbeta[p]);
    }
  }
  if (kind == RowKind::shifted && single.exists()) {
    of_team[single.column] = single.dgamma;
    of_team[n + single.column] = single.dbeta;
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
  RowKind kind;
  int period;  // rows between rows at the same offset from a pack; a power of two
  std::size_t shared_bytes;
};

/// Returns the bytes in shared memory from the start of gamma to the ring.
template <class T>
RUNG_HD constexpr int gamma_bytes(int n, bool wide, RowKind kind) {
  const int size = static_cast<int>(wide ? sizeof(Accumulator<T>) : sizeof(T));
  return round_up((n + (kind == RowKind::shifted ? vector_width<T> : 0)) * size, 16);
}

/// Returns the distance of rows, if they have one.
std::int64_t row_stride(const NormBackward::Lines& lines) {
  return lines.rows.rank == 0 ? 0 : lines.rows.strides[NormBackward::row_x][0];
}

template <class T>
inline RingPlan plan_of(const NormBackward::Args& args, const NormGradientArguments<T>& call,
                        const Context& context) {
  using W = Accumulator<T>;
  const auto n = static_cast<std::size_t>(call.n);
  RingPlan plan{};
  plan.threads = static_cast<int>(round_up(
      larger(ceil_div(call.n, std::int64_t{kept_packs<T> * vector_width<T>}), std::int64_t{1}),
      32));
  constexpr std::int64_t width = vector_width<T>;
  const bool packs = require_whole_packs(args).ok;
  const bool whole =
      !call.wide_gamma && call.n == std::int64_t{plan.threads} * kept_packs<T> * width;
  plan.kind = !packs ? RowKind::shifted : whole ? RowKind::whole : RowKind::regular;
  plan.period = 1;
  while (!packs && plan.period * row_stride(call.lines) % width != 0) plan.period *= 2;
  const std::size_t fixed =
      sizeof(RingShared<W>) + gamma_bytes<T>(static_cast<int>(call.n), call.wide_gamma, plan.kind);
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
template <class T, RowKind kind, int max_threads = ring_threads>
__global__ void __launch_bounds__(max_threads, 1)
    norm_backward_ring(NormGradientArguments<T> call, int stages) {
  start_dependent();
  using W = Accumulator<T>;
  constexpr int width = vector_width<T>;
  constexpr int packs = kept_packs<T>;
  auto& scratch = shared<RingShared<W>>();
  const int thread = static_cast<int>(threadIdx.x);
  const int team = static_cast<int>(threadIdx.y);
  const int teams = static_cast<int>(blockDim.y);
  const int warps = static_cast<int>(blockDim.x) / 32;
  const int n = static_cast<int>(call.n);
  const std::int64_t step = std::int64_t{gridDim.x} * teams;
  // The rows of a block are a multiple of gridDim.x apart if their offset from a pack matters.
  const std::int64_t first = kind == RowKind::shifted
                                 ? std::int64_t{blockIdx.x} + std::int64_t{gridDim.x} * team
                                 : std::int64_t{blockIdx.x} * teams + team;
  int head = 0;
  if constexpr (kind == RowKind::shifted) {
    const std::int64_t row = blockIdx.x;
    const int lead = lead_of<width>(
        call.x + call.lines.rows.template offset<NormBackward::row_x>(row < call.rows ? row : 0));
    head = lead == 0 ? 0 : width - lead;
  }
  const int row_packs =
      kind == RowKind::shifted ? (n - head) / width : static_cast<int>(call.n / width);

  // gamma precedes the ring; element `head` is aligned.
  auto* const memory = reinterpret_cast<unsigned char*>(&scratch + 1);
  const int size = static_cast<int>(call.wide_gamma ? sizeof(W) : sizeof(T));
  auto* const gamma = memory + (head > 0 ? width * size : 0);
  copy_gamma(call, gamma - head * size);
  auto* const ring =
      reinterpret_cast<Pack<T, width>*>(memory + gamma_bytes<T>(n, call.wide_gamma, kind));
  const TeamRows<T, kind> mine{
      call, head, row_packs, ring + team * stages * 2 * row_packs, scratch.full[team], gamma};
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
  // Calls f with true if the warp has all its packs: it then needs no bounds checks. With 128
  // registers per thread the two versions would spill.
  const bool all_packs = mine.left() >= warp_size * packs;
  const auto with_bounds = [&](auto&& f) {
    if (kind == RowKind::whole || (max_threads < ring_threads && all_packs)) {
      f(std::true_type{});
    } else {
      f(std::false_type{});
    }
  };
  Scale<W> next = scale_at(first);
  SingleElement<T> single(mine);
  if constexpr (kind == RowKind::shifted) single.load(call, first);
  __syncthreads();  // gamma and the mbarriers are initialized

  int stage = 0;
  unsigned parity = 0;
  int turn = 0;
  for (std::int64_t row = first; row < call.rows; row += step) {
    Scale<W> scale = next;
    next = scale_at(row + step);
    const W single_x = convert<W>(single.x);
    const W single_dy = convert<W>(single.dy);
    if constexpr (kind == RowKind::shifted) single.load(call, row + step);
    ptx::mbarrier_wait(mine.full[stage], parity);
    if (call.rstd == nullptr) {
      const bool counts = kind == RowKind::shifted && single.exists();
      scale =
          scale_again(mine, stage, scratch.parts + team * warps, single.count, counts, single_x);
    }
    Means<W> means{};
    W single_z = 0;
    if constexpr (kind == RowKind::shifted) {
      if (single.exists()) {
        single_z = (single_x - scale.center) * scale.rstd + scale.shift;
        means.g = single_dy * single.gamma;
        means.gz = means.g * single_z;
        single.dgamma += single_dy * single_z;
        single.dbeta += single_dy;
      }
    }
    with_bounds([&]<bool all>(std::bool_constant<all>) {
#pragma unroll
      for (int p = 0; p < packs; ++p) {
        if (!all && !mine.has(p)) continue;
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
    });
    means = warp_reduce(means, AddMeans{});
    Means<W>* const of_warp = scratch.means[turn] + team * warps;
    turn ^= 1;
    if (warps > 1 && lane_of_thread() == 0) of_warp[thread / 32] = means;
    team_sync();  // x and dy are read again below, not kept
    if (warps > 1) {
      // All warps have read the previous row twice: reuse its stage.
      if (thread == 0 && row != first && stages > 2) {
        mine.fetch(row + (stages - 1) * step, stage == 0 ? stages - 1 : stage - 1);
      }
      const int lane = lane_of_thread();
      means = warp_reduce(lane < warps ? of_warp[lane] : Means<W>{}, AddMeans{});
    }
    const W all_g = call.layer ? means.g * call.factors.part * scale.rstd : W{0};
    const W all_gz = means.gz * call.factors.part * scale.rstd;
    T* const dx_row = call.dx + call.lines.rows.template offset<NormBackward::row_dx>(row) + head;
    if constexpr (kind == RowKind::shifted) {
      if (single.exists()) {
        dx_row[single.column - head] =
            convert<T>(single_dy * scale.rstd * single.gamma - all_g - single_z * all_gz);
      }
    }
    with_bounds([&]<bool all>(std::bool_constant<all>) {
#pragma unroll
      for (int p = 0; p < packs; ++p) {
        if (!all && !mine.has(p)) continue;
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
    });
    if (warps == 1 || stages <= 2) {
      // Of two stages, one must be loading at all times.
      team_sync();
      if (thread == 0) mine.fetch(row + stages * step, stage);
    }
    if (++stage == stages) {
      stage = 0;
      parity ^= 1;
    }
  }
  if (call.sums != nullptr) add_up(mine, ring, dgamma, dbeta, single);
}

/// The sums of a block are as many bytes as one to three of its rows.
constexpr std::int64_t rows_per_block = 4;

/// Returns the number of blocks: at most one per SM, each with at least four rows, and one per
/// team. A multiple of the period, or one block per row.
std::int64_t blocks_of(std::int64_t rows, const RingPlan& plan, const Context& context) {
  const std::int64_t least = larger<std::int64_t>(rows_per_block, plan.teams);
  const std::int64_t blocks =
      clamped(ceil_div(rows, least), std::int64_t{1}, std::int64_t{context.info().sms});
  const std::int64_t period = plan.period;
  const std::int64_t multiple = larger(blocks / period, std::int64_t{1}) * period;
  return smaller(multiple, larger(rows, std::int64_t{1}));
}

constexpr std::int64_t shortest_shifted_row = 512;

/// Requires rows of the same offset from a pack in x, dy and dx, at equal distances.
Support require_shifted_rows(const NormBackward::Args& args) {
  const NormBackward::Lines lines = NormBackward::lines_of(args);
  if (!lines.contiguous_columns()) return unsupported("rows and weights must be contiguous");
  if (lines.columns.size() < shortest_shifted_row || lines.rows.rank > 1) {
    return unsupported("rows of partial packs must be 512 elements or more, at equal distances");
  }
  return rows_agree(args)
             ? supported
             : unsupported("rows of x, dy and dx must have the same offset from 16 bytes");
}

Support supports(const NormBackward::Args& args, const Context& context) {
  if (context.info().compute_capability < 90) {
    return unsupported("bulk copies need compute capability 9.0");
  }
  if (!require_whole_packs(args)) {
    if (const Support shifted = require_shifted_rows(args); !shifted) return shifted;
  }
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
      args.x.dtype, [&]<class T>() { return plan_of(args, call_of<T>(args), context); });
  const RowBlock block{.threads = plan.threads, .rows = plan.teams};
  const std::int64_t blocks = blocks_of(rows, plan, context);
  const Work all =
      row_work(larger(rows, blocks * plan.teams), block, 1, type_path(args.x.dtype), 128);
  return with_finish(args, in_turns(blocks, all));
}

void run(const NormBackward::Args& args, Context& context) {
  visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
    NormGradientArguments<T> call = call_of<T>(args);
    const RingPlan plan = plan_of(args, call, context);
    call.chunks = blocks_of(call.rows, plan, context);
    if (wants_sums(args)) {
      call.sums = static_cast<Accumulator<T>*>(context.workspace(
          static_cast<std::size_t>(2 * call.chunks * call.n) * sizeof(Accumulator<T>)));
    }
    const bool few = plan.threads * plan.teams <= few_threads;
    auto* kernel = norm_backward_ring<T, RowKind::whole>;
    if (plan.kind == RowKind::regular) {
      kernel = few ? norm_backward_ring<T, RowKind::regular, few_threads>
                   : norm_backward_ring<T, RowKind::regular>;
    } else if (plan.kind == RowKind::shifted) {
      kernel = few ? norm_backward_ring<T, RowKind::shifted, few_threads>
                   : norm_backward_ring<T, RowKind::shifted>;
    }
    launch(context,
           {.grid = call.chunks,
            .block = {plan.threads, plan.teams},
            .shared_bytes = plan.shared_bytes},
           kernel, call, plan.stages);
    if (call.sums != nullptr) launch_finish(context, call, can_depend(context));
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
