// SPDX-License-Identifier: Apache-2.0
// norm_backward / staged rows
//
// Idea     Adjacent rows: a persistent block copies a contiguous chunk of rows, 16 KiB of each
//          tensor, into shared memory (x, dy) and out of it (dx), 16 bytes at a time, regardless of
//          row boundaries. A row uses as many lanes as it needs, from one to a block. A lane owns
//          the same columns of every row, so their sums stay in registers.
// Changes  against block_per_row: x and dy are read once; short rows do not leave most of a block
//          idle; two kernels, not four. Against registers_fused: rows of any length.
// Cost     3 global accesses per element and six to shared memory; 2 n sums per block.
// Limits   Rows of up to 16384 elements (16-bit 12288, f64 8192), contiguous one after another in
//          x, dy and dx; gamma, dgamma and dbeta contiguous.
// Source   norm's short_rows.
#include <cmath>

#include "rung/core/bounds.hpp"
#include "rung/device/resident.hpp"
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
constexpr int max_threads = 512;  // if a lane has more than `some` columns; one row per block

template <class W>
struct alignas(16) Shared {
  RowScratch<W> sums;
  RowScratch<Moments<W>> moments;
  RowScratch<Means<W>> means;
};

/// A lane's columns of a row: lane, lane + lanes, ... Short rows are kept in registers; long ones
/// are read from shared memory again.
template <class T, int kept>
struct StagedRow {
  using W = Accumulator<T>;
  static constexpr bool in_registers = kept <= some;
  T* x_row;
  const T* dy_row;
  int lane;
  int lanes;
  int length;
  W x_kept[in_registers ? kept : 1];
  W dy_kept[in_registers ? kept : 1];

  __device__ __forceinline__ StagedRow(T* x_begin, const T* dy_begin, int lane, int lanes,
                                       int length)
      : x_row(x_begin), dy_row(dy_begin), lane(lane), lanes(lanes), length(length) {
    if constexpr (in_registers) {
#pragma unroll
      for (int k = 0; k < kept; ++k) {
        x_kept[k] = has(k) ? convert<W>(x_row[column(k)]) : W{0};
        dy_kept[k] = has(k) ? convert<W>(dy_row[column(k)]) : W{0};
      }
    }
  }
  [[nodiscard]] __device__ __forceinline__ int column(int k) const { return lane + k * lanes; }
  [[nodiscard]] __device__ __forceinline__ bool has(int k) const { return column(k) < length; }
  [[nodiscard]] __device__ __forceinline__ W x(int k) const {
    if constexpr (in_registers) return x_kept[k];
    return convert<W>(x_row[column(k)]);
  }
  [[nodiscard]] __device__ __forceinline__ W dy(int k) const {
    if constexpr (in_registers) return dy_kept[k];
    return convert<W>(dy_row[column(k)]);
  }
  [[nodiscard]] __device__ __forceinline__ W z(int k, const Scale<W>& scale) const {
    return (x(k) - scale.center) * scale.rstd + scale.shift;
  }
};

/// gamma at a lane's columns. Held in registers if StagedRow holds its row there, else loaded on
/// each use.
template <class T, int kept>
struct Weights {
  using W = Accumulator<T>;
  static constexpr bool in_registers = kept <= some;
  const NormGradientArguments<T>& call;
  int lane;
  int lanes;
  W of_column[in_registers ? kept : 1];

  __device__ __forceinline__ Weights(const NormGradientArguments<T>& call, const RowChunks& chunks)
      : call(call), lane(static_cast<int>(threadIdx.x) % chunks.lanes), lanes(chunks.lanes) {
    if constexpr (in_registers) {
#pragma unroll
      for (int k = 0; k < kept; ++k) {
        const int i = lane + k * lanes;
        of_column[k] = i < chunks.length ? gamma_at(call, i) : W{0};
      }
    }
  }
  [[nodiscard]] __device__ __forceinline__ W at(int k) const {
    if constexpr (in_registers) return of_column[k];
    return gamma_at(call, lane + k * lanes);
  }
};

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
      if (row.has(k)) sum += row.x(k) * call.factors.shrink;
    }
    center = center_near(row_lanes_reduce(sum, Plus{}, row.lanes, scratch.sums) *
                         call.factors.shrunk_part);
  }
  Moments<W> moments{};
#pragma unroll
  for (int k = 0; k < kept; ++k) {
    if (row.has(k)) moments.add(row.x(k) - center, call.factors.shrink);
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

template <int kept, int most_threads, class T>
__global__ void __launch_bounds__(most_threads, kept == some ? 2 : 1)
    norm_backward_staged_rows(const __grid_constant__ NormGradientArguments<T> call,
                              RowChunks chunks) {
  start_dependent();
  using W = Accumulator<T>;
  auto& scratch = shared<Shared<W>>();
  auto* const memory = reinterpret_cast<unsigned char*>(&scratch + 1);
  const Weights<T, kept> gamma(call, chunks);
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
        const W g = row.dy(k) * gamma.at(k);
        means.g += g;
        means.gz += g * z;
        dgamma[k] += row.dy(k) * z;
        dbeta[k] += row.dy(k);
      }
      means = row_lanes_reduce(means, AddMeans{}, chunks.lanes, scratch.means);
      const W mean_g = call.layer ? means.g * call.factors.part : W{0};
      const W mean_gz = means.gz * call.factors.part;
#pragma unroll
      for (int k = 0; k < kept; ++k) {
        if (!row.has(k)) continue;
        const W g = row.dy(k) * gamma.at(k);
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

/// Launch plan, and the shared memory per block.
struct StagedRowsPlan {
  RowChunks chunks;
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

StagedRowsPlan plan_of(std::int64_t rows, int n, std::size_t element, bool sums,
                       const Context& context) {
  constexpr int group_bytes = 16 << 10;  // per tensor
  const std::size_t wide = larger<std::size_t>(element, 4);
  StagedRowsPlan plan{};
  plan.kept = kept_of(n, element);
  plan.threads = threads;
  if (plan.kept > some) {
    plan.threads = warp_size;
    while (plan.threads * plan.kept < n) plan.threads *= 2;
  }
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
  return plan_of(lines.rows.size(), static_cast<int>(lines.columns.size()), size_of(args.x.dtype),
                 wants_sums(args), context);
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
  const int trips = ceil_div(plan.chunks.group * plan.chunks.lanes, plan.threads) * plan.kept;
  const Work groups = block_work(plan.chunks.blocks(), plan.threads, trips,
                                 plan.kept > some   ? "many"
                                 : plan.kept < some ? "few"
                                                    : type_path(args.x.dtype),
                                 128);
  return with_finish(args, in_turns(context, in_turns(plan.blocks, groups)));
}

template <int kept, int most_threads, class T>
void launch_staged(Context& context, NormGradientArguments<T> call, const StagedRowsPlan& plan) {
  using W = Accumulator<T>;
  auto* const kernel = norm_backward_staged_rows<kept, most_threads, T>;
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
         kernel, call, plan.chunks);
  if (call.sums != nullptr) launch_finish(context, call, can_depend(context));
}

void run(const NormBackward::Args& args, Context& context) {
  visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
    const NormGradientArguments<T> call = call_of<T>(args);
    const StagedRowsPlan plan = plan_of(args, context);
    if (plan.kept == few) return launch_staged<few, threads>(context, call, plan);
    if (plan.kept == some) return launch_staged<some, threads>(context, call, plan);
    launch_staged<many<T>, max_threads>(context, call, plan);
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
