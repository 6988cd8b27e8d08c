// SPDX-License-Identifier: Apache-2.0
// norm_backward / staged rows
//
// Idea     Adjacent rows: a persistent block copies a contiguous chunk of rows, 16 KiB of each
//          tensor, into shared memory (x, dy) and out of it (dx), 16 bytes at a time, regardless of
//          row boundaries. A row uses as many lanes as it needs, and a lane owns the same columns
//          of every row, so their sums stay in registers. Rows of more than 2048 elements are
//          chunks of their own in a ring, so that the next ones arrive while one is computed.
// Changes  against block_per_row: x and dy are read once; short rows do not leave most of a block
//          idle; two kernels, not four. Against registers_fused: rows of any length.
// Cost     3 global accesses per element and six to shared memory, eight in the ring; 2 n sums per
//          block.
// Limits   Rows of up to 16384 elements (16-bit 12288, f64 8192), contiguous one after another in
//          x, dy and dx; gamma, dgamma and dbeta contiguous.
// Source   norm's short_rows.
#include <cmath>

#include "rung/core/bounds.hpp"
#include "rung/device/resident.hpp"
#include "rung/device/row/row_cut.hpp"
#include "rung/device/row_chunk.hpp"
#include "rung/ops/norm_backward/cuda/detail/norm_backward.hpp"

namespace rung {
namespace {

using namespace norm_backward_cuda;

/// Columns per lane at most, chosen by row length; the column sums take twice as many registers.
constexpr int few = 2;
constexpr int some = 8;
template <class T>
constexpr int many = sizeof(T) == 8   ? 16
                     : sizeof(T) == 4 ? 32
                                      : 24;  // limited by registers
constexpr int threads = 256;
constexpr int max_threads = 512;  // of long rows, whose lanes have more than `some` columns

template <class W>
struct alignas(16) Shared {
  RowScratch<W> sums;
  RowScratch<Moments<W>> moments;
  RowScratch<Means<W>> means;
};

/// A lane's columns of a row in its registers: lane, lane + lanes, ...
template <class T, int kept>
struct StagedRow {
  using W = Accumulator<T>;
  T* x_row;
  int lane;
  int lanes;
  int length;
  W x[kept];
  W dy[kept];

  __device__ __forceinline__ StagedRow(T* x_begin, const T* dy_begin, int lane, int lanes,
                                       int length)
      : x_row(x_begin), lane(lane), lanes(lanes), length(length) {
#pragma unroll
    for (int k = 0; k < kept; ++k) {
      x[k] = has(k) ? convert<W>(x_begin[column(k)]) : W{0};
      dy[k] = has(k) ? convert<W>(dy_begin[column(k)]) : W{0};
    }
  }
  [[nodiscard]] __device__ __forceinline__ int column(int k) const { return lane + k * lanes; }
  [[nodiscard]] __device__ __forceinline__ bool has(int k) const { return column(k) < length; }
  [[nodiscard]] __device__ __forceinline__ W z(int k, const Scale<W>& scale) const {
    return (x[k] - scale.center) * scale.rstd + scale.shift;
  }
};

/// Loads gamma at a lane's columns.
template <int kept, class T, class W = Accumulator<T>>
__device__ __forceinline__ void load_gamma(const NormGradientArguments<T>& call,
                                           const RowChunks& chunks, W (&gamma)[kept]) {
#pragma unroll
  for (int k = 0; k < kept; ++k) {
    const int i = static_cast<int>(threadIdx.x) % chunks.lanes + k * chunks.lanes;
    gamma[k] = i < chunks.length ? gamma_at(call, i) : W{0};
  }
}

template <int kept, class T, class W = Accumulator<T>>
__device__ __forceinline__ Scale<W> scale_of(const NormGradientArguments<T>& call,
                                             const StagedRow<T, kept>& row, std::int64_t index,
                                             bool exists, Shared<W>& scratch) {
  if (call.rstd != nullptr) {
    if (!exists) return Scale<W>{};
    const auto& strides = call.lines.rows.strides;  // rows have one axis
    return given_scale(call, index * strides[NormBackward::row_mean][0],
                       index * strides[NormBackward::row_rstd][0]);
  }
  W center = 0;
  if (call.layer) {
    W sum = 0;
#pragma unroll
    for (int k = 0; k < kept; ++k) {
      if (row.has(k)) sum += row.x[k] * call.factors.shrink;
    }
    center = center_near(row_lanes_reduce(sum, Plus{}, row.lanes, scratch.sums) *
                         call.factors.shrunk_part);
  }
  Moments<W> moments{};
#pragma unroll
  for (int k = 0; k < kept; ++k) {
    if (row.has(k)) moments.add(row.x[k] - center, call.factors.shrink);
  }
  moments = row_lanes_reduce(moments, AddMoments{}, row.lanes, scratch.moments);
  return scale_about(call, center, moments);
}

/// Writes the block's sums: reduces lanes of a warp with the same columns by shuffles, then adds up
/// warps, or groups of warps that share a row, in order. `memory` is free for reuse.
template <int kept, class T, class W = Accumulator<T>>
__device__ __forceinline__ void write_sums(const NormGradientArguments<T>& call,
                                           const RowChunks& chunks, W* memory, W (&dgamma)[kept],
                                           W (&dbeta)[kept]) {
  const int thread = static_cast<int>(threadIdx.x);
  const int together = larger(chunks.lanes, warp_size);
  const int parts = static_cast<int>(blockDim.x) / together;
  W* const sums = call.sums + std::int64_t{blockIdx.x} * 2 * chunks.length;
  W* const to = parts == 1 ? sums : memory + thread / together * 2 * chunks.length;
#pragma unroll
  for (int k = 0; k < kept; ++k) {
    for (int distance = chunks.lanes; distance < warp_size; distance *= 2) {
      dgamma[k] += shuffle_xor(dgamma[k], distance);
      dbeta[k] += shuffle_xor(dbeta[k], distance);
    }
    const int i = thread % chunks.lanes + k * chunks.lanes;
    if (i >= chunks.length || thread % together >= chunks.lanes) continue;
    to[i] = dgamma[k];
    to[chunks.length + i] = dbeta[k];
  }
  if (parts == 1) return;
  __syncthreads();
  for (int i = thread; i < 2 * chunks.length; i += static_cast<int>(blockDim.x)) {
    W sum = 0;
    for (int part = 0; part < parts; ++part) sum += memory[part * 2 * chunks.length + i];
    sums[i] = sum;
  }
}

template <int kept, class T>
__global__ void __launch_bounds__(threads, kept == some ? 2 : 1)
    norm_backward_staged_rows(const __grid_constant__ NormGradientArguments<T> call,
                              RowChunks chunks) {
  start_dependent();
  using W = Accumulator<T>;
  auto& scratch = shared<Shared<W>>();
  auto* const memory = reinterpret_cast<unsigned char*>(&scratch + 1);
  W gamma[kept];
  load_gamma(call, chunks, gamma);
  W dgamma[kept] = {};
  W dbeta[kept] = {};
  for (std::int64_t first = std::int64_t{blockIdx.x} * chunks.group; first < chunks.rows;
       first += std::int64_t{gridDim.x} * chunks.group) {
    const RowChunk chunk(chunks, first);
    T* const x = behind_as(reinterpret_cast<T*>(memory), call.x + chunk.offset);  // and then dx
    T* const dy =
        behind_as(reinterpret_cast<T*>(memory + chunks.bytes<T>()), call.dy + chunk.offset);
    copy_in(x, call.x + chunk.offset, chunk.count);
    copy_in(dy, call.dy + chunk.offset, chunk.count);
    ptx::async_wait_all();
    __syncthreads();
    for_each_row_of(chunks, chunk.rows, [&](int begin, int lane) {
      const int index = begin / chunks.length;
      const bool exists = index < chunk.rows;
      const StagedRow<T, kept> row(x + begin, dy + begin, lane, chunks.lanes, chunks.length);
      const Scale<W> scale = scale_of(call, row, first + index, exists, scratch);
      Means<W> means{};
#pragma unroll
      for (int k = 0; k < kept; ++k) {
        if (!row.has(k)) continue;
        const W z = row.z(k, scale);
        const W g = row.dy[k] * gamma[k];
        means.g += g;
        means.gz += g * z;
        dgamma[k] += row.dy[k] * z;
        dbeta[k] += row.dy[k];
      }
      means = row_lanes_reduce(means, AddMeans{}, chunks.lanes, scratch.means);
      const W mean_g = call.layer ? means.g * call.factors.part : W{0};
      const W mean_gz = means.gz * call.factors.part;
#pragma unroll
      for (int k = 0; k < kept; ++k) {
        if (!row.has(k)) continue;
        const W g = row.dy[k] * gamma[k];
        row.x_row[row.column(k)] =
            convert<T>(scale.rstd * (g - mean_g - row.z(k, scale) * mean_gz));
      }
    });
    __syncthreads();
    copy_out(call.dx + chunk.offset, x, chunk.count);
    __syncthreads();  // the next chunk may overwrite
  }
  if (call.sums == nullptr) return;
  write_sums<kept>(call, chunks, reinterpret_cast<W*>(memory), dgamma, dbeta);
}

/// Ring of rows in shared memory. A stage holds x and dy, each `row_bytes`.
struct StagedRing {
  int stages;
  int row_bytes;
  bool gamma;  // gamma precedes the ring, in the accumulator type
};
constexpr int most_stages = 4;
constexpr int together = 4;  // columns of a thread whose loads are issued before the first use

/// Calls f(first) for groups of `together` columns per thread, up to the last that exist.
template <int kept, class F>
__device__ __forceinline__ void for_column_groups(int trips, F&& f) {
  static_assert(kept % together == 0);
#pragma unroll
  for (int first = 0; first < kept; first += together) {
    if (first >= trips) break;  // the same in all threads
    f(first);
  }
}

/// Waits for this thread's copies of a row; those of the `stages` - 2 rows after it may be in
/// flight.
__device__ __forceinline__ void wait_for_row(int stages) {
  if (stages == 4) {
    ptx::async_wait<2>();
  } else if (stages == 3) {
    ptx::async_wait<1>();
  } else {
    ptx::async_wait<0>();
  }
}

/// Computes rows of more than some * threads elements, one per block at a time. A warp owns
/// adjacent columns, `trips` per lane.
template <int kept, class T>
__global__ void __launch_bounds__(max_threads, 1)
    norm_backward_staged_ring(const __grid_constant__ NormGradientArguments<T> call,
                              RowChunks chunks, StagedRing ring) {
  start_dependent();
  using W = Accumulator<T>;
  constexpr int width = vector_width<T>;
  auto& scratch = shared<Shared<W>>();
  auto* const memory = reinterpret_cast<unsigned char*>(&scratch + 1);
  const int thread = static_cast<int>(threadIdx.x);
  const int threads_of_block = static_cast<int>(blockDim.x);
  const int warp = thread / warp_size;
  const int lane = lane_of_thread();
  const int n = chunks.length;
  const int trips = ceil_div(n, threads_of_block);
  const int rows = static_cast<int>(chunks.rows);
  const int step = static_cast<int>(gridDim.x);
  auto* const staged_gamma = reinterpret_cast<W*>(memory);
  auto* const stages = memory + (ring.gamma ? round_up(n * static_cast<int>(sizeof(W)), 16) : 0);
  const int mine = warp * warp_size * trips + lane;  // this thread's first column
  const int left = smaller(n, (warp + 1) * warp_size * trips) - mine;
  const auto has = [&](int k) { return k * warp_size < left; };
  const W* const gamma = ring.gamma ? staged_gamma : static_cast<const W*>(call.gamma);
  const bool weighted = gamma != nullptr;
  const auto gamma_of = [&](int k) {
    W weight{1};
    if (weighted && has(k)) weight = gamma[mine + k * warp_size];
    return weight;
  };

  const auto stage_of = [&](int stage, int tensor) {
    return reinterpret_cast<T*>(stages + (2 * stage + tensor) * ring.row_bytes);
  };
  const auto row_of = [&](const T* tensor, int row) { return tensor + std::int64_t{row} * n; };
  // Starts copying the aligned middle of a row to a stage.
  const auto copy_middle = [&](T* stage, const T* from) {
    const RowCut<T> cut(from, n);
    T* const to = cut.at(stage);
    for (int i = cut.head + thread * width; i < cut.head + cut.middle;
         i += threads_of_block * width) {
      ptx::async_copy<16>(to + i, from + i);
    }
  };
  const auto fetch = [&](int row, int stage) {
    if (row < rows) {
      copy_middle(stage_of(stage, 0), row_of(call.x, row));
      copy_middle(stage_of(stage, 1), row_of(call.dy, row));
    }
    ptx::async_commit();
  };
  // The first warp copies head and tail of x through a register, the second those of dy.
  const T* const edges_of = warp == 0 ? call.x : call.dy;
  const auto load_edge = [&](int row) {
    if (warp >= 2 || row >= rows) return zero<T>();
    const T* const from = row_of(edges_of, row);
    return RowCut<T>(from, n).load_edge(from, lane);
  };
  const auto write_edge = [&](int row, int stage, T edge) {
    if (warp >= 2 || row >= rows) return;
    RowCut<T>(row_of(edges_of, row), n).write_edge(stage_of(stage, warp), edge, lane);
  };

  const int first_row = static_cast<int>(blockIdx.x);
  for (int stage = 0; stage + 1 < ring.stages; ++stage) fetch(first_row + stage * step, stage);
  T edge = load_edge(first_row);
  if (ring.gamma) {
    for (int i = thread; i < n; i += threads_of_block) staged_gamma[i] = gamma_at(call, i);
  }
  write_edge(first_row, 0, edge);

  W dgamma[kept] = {};
  W dbeta[kept] = {};
  int stage = 0;
  for (int row = first_row; row < rows; row += step) {
    const int next = stage + 1 == ring.stages ? 0 : stage + 1;
    if (ring.stages == 1) {
      fetch(row, 0);
      if (row != first_row) write_edge(row, 0, load_edge(row));
    }
    wait_for_row(ring.stages);
    __syncthreads();  // this row has been copied; the previous row's stage is free
    if (ring.stages > 1) {
      fetch(row + (ring.stages - 1) * step, stage == 0 ? ring.stages - 1 : stage - 1);
      edge = load_edge(row + step);
    }
    const T* const x_row = row_of(call.x, row);
    T* const staged = behind_as(stage_of(stage, 0), x_row);  // x, and then dx
    T* const x = staged + mine;
    const T* const dy = behind_as(stage_of(stage, 1), row_of(call.dy, row)) + mine;
    // Zero if the row has no such column. Arithmetic follows all loads of a group without branches,
    // which would serialize the loads.
    const auto load = [&](const auto* elements, int k) {
      auto element = zero<T>();
      if (has(k)) element = elements[k * warp_size];
      return convert<W>(element);
    };

    Scale<W> scale{};
    if (call.rstd != nullptr) {
      const auto& strides = call.lines.rows.strides;  // rows have one axis
      scale = given_scale(call, row * strides[NormBackward::row_mean][0],
                          row * strides[NormBackward::row_rstd][0]);
    } else {
      W center = 0;
      if (call.layer) {
        W sum = 0;
        for_column_groups<kept>(trips, [&](int first) {
#pragma unroll
          for (int k = first; k < first + together; ++k) {
            sum += load(x, k) * call.factors.shrink;
          }
        });
        center = center_near(row_lanes_reduce(sum, Plus{}, threads_of_block, scratch.sums) *
                             call.factors.shrunk_part);
      }
      Moments<W> moments{};
      for_column_groups<kept>(trips, [&](int first) {
#pragma unroll
        for (int k = first; k < first + together; ++k) {
          const W distance = load(x, k) - center;
          moments.add(has(k) ? distance : W{0}, call.factors.shrink);
        }
      });
      moments = row_lanes_reduce(moments, AddMoments{}, threads_of_block, scratch.moments);
      scale = scale_about(call, center, moments);
    }

    Means<W> means{};
    for_column_groups<kept>(trips, [&](int first) {
#pragma unroll
      for (int k = first; k < first + together; ++k) {
        const W gradient = load(dy, k);
        const W weight = gamma_of(k);
        const W z = (load(x, k) - scale.center) * scale.rstd + scale.shift;
        const W product = has(k) ? gradient * z : W{0};
        means.g += gradient * weight;
        means.gz += product * weight;
        dgamma[k] += product;
        dbeta[k] += gradient;
      }
    });
    means = row_lanes_reduce(means, AddMeans{}, threads_of_block, scratch.means);
    const W mean_g = call.layer ? means.g * call.factors.part : W{0};
    const W mean_gz = means.gz * call.factors.part;
    for_column_groups<kept>(trips, [&](int first) {
      T dx[together];
#pragma unroll
      for (int k = 0; k < together; ++k) {
        const W g = load(dy, first + k) * gamma_of(first + k);
        const W z = (load(x, first + k) - scale.center) * scale.rstd + scale.shift;
        dx[k] = convert<T>(scale.rstd * (g - mean_g - z * mean_gz));
      }
#pragma unroll
      for (int k = 0; k < together; ++k) {
        if (has(first + k)) x[(first + k) * warp_size] = dx[k];
      }
    });
    if (ring.stages > 1) write_edge(row + step, next, edge);
    __syncthreads();
    copy_out(call.dx + std::int64_t{row} * n, staged, n);
    if (ring.stages == 1) __syncthreads();  // the next row overwrites
    stage = next;
  }
  if (call.sums == nullptr) return;
  W* const sums = call.sums + std::int64_t{blockIdx.x} * 2 * n + mine;
#pragma unroll
  for (int k = 0; k < kept; ++k) {
    if (!has(k)) continue;
    sums[k * warp_size] = dgamma[k];
    sums[n + k * warp_size] = dbeta[k];
  }
}

/// Launch plan, and the shared memory per block.
struct StagedRowsPlan {
  RowChunks chunks;
  StagedRing ring;  // of long rows
  int kept;
  int threads;
  std::int64_t blocks;  // upper bound, before occupancy is known
  std::size_t shared_bytes;
};

constexpr int many_of(std::size_t element) {
  return element == 8 ? many<double> : element == 4 ? many<float> : many<f16>;
}

/// Returns the columns per lane. Eight columns per lane save shuffles; but if a large power of two
/// divides the row stride in words, lanes of a warp have bank conflicts, which two columns per lane
/// reduce.
int kept_of(int n, std::size_t element) {
  if (n > few * warp_size) {
    return n <= some * threads ? some : many_of(element);
  }
  constexpr int banks = 32;
  int apart = 1;  // largest power of two that divides the row's words
  while (apart < banks && n * static_cast<int>(element) % (8 * apart) == 0) apart *= 2;
  return n > 2 * few && apart <= 2 * ceil_div(n, some) ? some : few;
}

/// Returns the plan of rows that occupy a block each. `gamma_is_wide`: gamma is absent or of the
/// accumulator type, so that it may stay in global memory.
StagedRowsPlan ring_plan(std::int64_t rows, int n, std::size_t element, bool sums,
                         bool gamma_is_wide, const Context& context) {
  StagedRowsPlan plan{};
  plan.kept = many_of(element);
  // Half of the columns that a lane may have, so that more warps hide the latencies.
  plan.threads = warp_size;
  while (plan.threads < max_threads && plan.threads * plan.kept < 2 * n) plan.threads *= 2;
  plan.chunks = {.rows = rows, .length = n, .group = 1, .lanes = plan.threads};
  plan.blocks = rows;
  // Sums of a block are as many bytes as 4/3 rows of f32: give a block at least 12 rows, unless
  // SMs remained idle.
  if (sums) plan.blocks = smaller(rows, larger<std::int64_t>(rows / 12, context.info().sms));
  const std::size_t wide = larger<std::size_t>(element, 4);
  const std::size_t row = round_up(static_cast<std::size_t>(n) * element, std::size_t{16}) + 16;
  const std::size_t gamma = round_up(static_cast<std::size_t>(n) * wide, std::size_t{16});
  const std::size_t scratch = element == 8 ? sizeof(Shared<double>) : sizeof(Shared<float>);
  const std::size_t per_sm = max_threads / static_cast<std::size_t>(plan.threads);
  const std::size_t share = context.info().shared_per_block / per_sm;
  const std::size_t most = share - smaller(share, scratch + 1024);
  plan.ring.gamma = !gamma_is_wide || gamma + 2 * row <= most;
  const std::size_t fixed = plan.ring.gamma ? gamma : 0;
  plan.ring.row_bytes = static_cast<int>(row);
  plan.ring.stages = static_cast<int>(
      clamped<std::size_t>((most - smaller(most, fixed)) / (2 * row), 1, most_stages));
  plan.shared_bytes = scratch + fixed + 2 * row * static_cast<std::size_t>(plan.ring.stages);
  return plan;
}

StagedRowsPlan plan_of(std::int64_t rows, int n, std::size_t element, bool sums, bool gamma_is_wide,
                       const Context& context) {
  constexpr int group_bytes = 16 << 10;  // per tensor
  const std::size_t wide = larger<std::size_t>(element, 4);
  StagedRowsPlan plan{};
  plan.kept = kept_of(n, element);
  if (plan.kept > some) return ring_plan(rows, n, element, sums, gamma_is_wide, context);
  plan.threads = threads;
  plan.chunks =
      row_chunks(rows, n, element, plan.kept, plan.threads, group_bytes, context, plan.threads);
  const std::int64_t groups = ceil_div(rows, std::int64_t{plan.chunks.group});
  plan.blocks = groups;
  if (sums) {
    // More blocks produce more sums to add up: computing a row takes as long as adding up 32 Ki
    // sums.
    const double best = std::sqrt(static_cast<double>(groups) * 32768 * plan.chunks.group / n);
    plan.blocks = clamped(static_cast<std::int64_t>(best), std::int64_t{1}, groups);
  }
  const auto parts = static_cast<std::size_t>(plan.threads / larger(plan.chunks.lanes, warp_size));
  const std::size_t staged =
      2 *
      (round_up(static_cast<std::size_t>(plan.chunks.group) * n * element, std::size_t{16}) + 16);
  const std::size_t met = sums && parts > 1 ? parts * 2 * n * wide : 0;
  plan.shared_bytes =
      larger(staged, met) + (element == 8 ? sizeof(Shared<double>) : sizeof(Shared<float>));
  return plan;
}

StagedRowsPlan plan_of(const NormBackward::Args& args, const Context& context) {
  const NormBackward::Lines lines = NormBackward::lines_of(args);
  const bool gamma_is_wide =
      args.gamma.data == nullptr || size_of(args.x.dtype) > 2 || args.gamma.dtype != args.x.dtype;
  return plan_of(lines.rows.size(), static_cast<int>(lines.columns.size()), size_of(args.x.dtype),
                 wants_sums(args), gamma_is_wide, context);
}

Support supports(const NormBackward::Args& args, const Context& context) {
  const NormBackward::Lines lines = NormBackward::lines_of(args);
  if (!lines.contiguous_columns()) return unsupported("rows and weights must be contiguous");
  const std::int64_t n = lines.columns.size();
  const std::size_t element = size_of(args.x.dtype);
  if (n < 1 || n > std::int64_t{max_threads} * many_of(element)) {
    return unsupported("rows of 1 to 16384 elements; of 16 bits 12288, of f64 8192");
  }
  bool follow = lines.rows.rank <= 1;
  for (const int tensor : {NormBackward::row_x, NormBackward::row_dy, NormBackward::row_dx}) {
    follow = follow && (lines.rows.size() <= 1 || lines.rows.strides[tensor][0] == n);
  }
  if (!follow) return unsupported("rows must follow one another");
  return plan_of(args, context).shared_bytes <= context.info().shared_per_block
             ? supported
             : unsupported("the row is longer than shared memory holds");
}

Work work(const NormBackward::Args& args, const Context& context) {
  const StagedRowsPlan plan = plan_of(args, context);
  const int columns = plan.kept > some ? plan.chunks.rounds() : plan.kept;
  const int trips = ceil_div(plan.chunks.group * plan.chunks.lanes, plan.threads) * columns;
  const Work groups = block_work(plan.chunks.blocks(), plan.threads, trips,
                                 plan.kept > some   ? "many"
                                 : plan.kept < some ? "few"
                                                    : type_path(args.x.dtype),
                                 128);
  return with_finish(args, in_turns(context, in_turns(plan.blocks, groups)));
}

template <class T, class... Parameters, class... Arguments>
void launch_staged(Context& context, NormGradientArguments<T> call, const StagedRowsPlan& plan,
                   void (*kernel)(NormGradientArguments<T>, RowChunks, Parameters...),
                   const Arguments&... arguments) {
  using W = Accumulator<T>;
  call.chunks =
      smaller(plan.blocks, resident_blocks(context, kernel, plan.threads, plan.shared_bytes));
  if (call.dgamma != nullptr || call.dbeta != nullptr) {
    call.sums = static_cast<W*>(
        context.workspace(static_cast<std::size_t>(2 * call.chunks * call.n) * sizeof(W)));
  }
  launch(context,
         {.grid = call.chunks,
          .block = plan.threads,
          .shared_bytes = plan.shared_bytes,
          .dependent = can_depend(context)},
         kernel, call, plan.chunks, arguments...);
  if (call.sums != nullptr) launch_finish(context, call, can_depend(context));
}

void run(const NormBackward::Args& args, Context& context) {
  visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
    const NormGradientArguments<T> call = call_of<T>(args);
    const StagedRowsPlan plan = plan_of(args, context);
    if (plan.kept > some) {
      launch_staged(context, call, plan, norm_backward_staged_ring<many<T>, T>, plan.ring);
    } else {
      launch_staged(context, call, plan,
                    plan.kept == few ? norm_backward_staged_rows<few, T>
                                     : norm_backward_staged_rows<some, T>);
    }
  });
}

const Rung<NormBackward> self{{.name = "staged_rows",
                               .after = "block_per_row",
                               .backend = device_backend,
                               .supports = supports,
                               .passes = {.loads = 1, .stores = 1},
                               .work = work,
                               .run = run}};

}  // namespace
}  // namespace rung
