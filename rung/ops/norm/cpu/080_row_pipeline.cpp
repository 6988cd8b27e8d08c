// SPDX-License-Identifier: Apache-2.0
// norm / row pipeline
//
// Idea     software pipeline over rows: one loop writes row r, sums the squares of row r + 1 and
//          the elements of row r + 2, vector by vector. Memory is read and written all the time,
//          and no row waits for its sums' last additions.
// Changes  against non_temporal: the three passes belong to three rows and share a loop
//          (detail/stream-inl.hpp); non-temporal stores only where y does not stay in a cache;
//          eight sums instead of four. And every call: long rows in blocks of 4096 elements, which
//          stay in L1 from the first to the third pass and whose moments are combined in double;
//          vectors across rows where those are adjacent; rows that are neither are gathered first;
//          the residual, mean and rstd; f64, f16 and bf16.
// Cost     x read once, y written once; 3 loads, 7 operations and a store per vector.
// Limits   one thread.
// Tried    EXPERIMENTS.md: prefetch distances, block sizes, short rows, what else to fuse.
// Source   T. Chan, G. Golub & R. LeVeque, Algorithms for computing the sample variance, 1983; M.
//          Lam, Software pipelining, 1988.
#include "rung/cpu/foreach_target.hpp"

#include <hwy/cache_control.h>

#include "rung/cpu/split.hpp"  // types: float double f16 bf16
#include "rung/ops/norm/cpu/detail/columns-inl.hpp"
#include "rung/ops/norm/cpu/detail/kernels.hpp"
#include "rung/ops/norm/cpu/detail/stream-inl.hpp"
#include "rung/ops/norm/shared/cpu/row-inl.hpp"

// The vector kernels, compiled once for each instruction set.
HWY_BEFORE_NAMESPACE();
namespace rung::norm_cpu::HWY_NAMESPACE {
namespace {

/// Two rows of so many f32 are half of an L2 of 1 MiB.
constexpr std::int64_t fits_twice_in_l2 = 1 << 16;

/// Bytes of x between what is worked on and what is prefetched.
constexpr std::int64_t group_prefetch_distance = 8 << 10;

/// Whether the next rows are in memory, and should be prefetched into L2.
HWY_INLINE bool is_far(const Call& call) { return call.streams && from_dram; }

template <class T>
HWY_INLINE void write_any(bool streams, const T* s, T* y, std::int64_t n,
                          const Scale<Wide<T>>& scale, const Call& call, std::int64_t first = 0,
                          Next<T> next = {}) {
  const auto* gamma = static_cast<const Wide<T>*>(call.gamma);
  const auto* beta = static_cast<const Wide<T>*>(call.beta);
  gamma = gamma != nullptr ? gamma + first : gamma;
  beta = beta != nullptr ? beta + first : beta;
  if (streams) {
    write<T, true>(s, y, n, scale, gamma, beta, next);
  } else {
    write<T, false>(s, y, n, scale, gamma, beta, next);
  }
}

/// Rows of up to so many elements are done several at a time, which fit into L1 together.
constexpr int together = 4;
constexpr std::int64_t short_row = block / together;

/// Short rows step by step, all of them at each: what one waits for (sums across lanes, a root, a
/// division: some 100 cycles, as long as its loops) another one hides.
template <class T, int count>
HWY_INLINE void short_rows(const Call& call, std::int64_t index, std::int64_t end) {
  const Norm::Args& args = *call.args;
  const bool layer = args.kind == NormKind::layer;
  const std::int64_t n = call.n;
  // Memory answers later than after one short row.
  const std::int64_t ahead = std::max<std::int64_t>(
      together,
      group_prefetch_distance / std::max<std::int64_t>(n * static_cast<int>(sizeof(T)), 1));
  Row<T> row[count];
  Wide<T> center[count];
  Moments<Wide<T>> moments[count];
  Scale<Wide<T>> scale[count];
#pragma GCC unroll 4
  for (int k = 0; k < count; ++k) {
    row[k] = row_at<T>(call, index + k);
    if (row[k].residual != nullptr) {
      add(row[k].x, row[k].residual, row[k].s, n);
      row[k].x = row[k].s;
    }
  }
#pragma GCC unroll 4
  for (int k = 0; k < count; ++k) {
    center[k] = layer ? sum_of(row[k].x, n) / static_cast<Wide<T>>(n) : 0;
  }
#pragma GCC unroll 4
  for (int k = 0; k < count; ++k) {
    const std::int64_t later = std::min(index + k + ahead, end - 1);
    const T* next = static_cast<const T*>(args.x.data) +
                    call.lines.rows.template offset<norm_lines::row_x>(later);
    moments[k] = moments_about<T>(center[k], row[k].x, n, {next, is_far(call)});
    if (!layer) moments[k].rest = 0;
  }
  if (layer) {
#pragma GCC unroll 4
    for (int k = 0; k < count; ++k) moments[k] = finite_moments(moments[k], row[k].x, n);
  }
#pragma GCC unroll 4
  for (int k = 0; k < count; ++k) scale[k] = scale_of(moments[k], n, args.epsilon);
#pragma GCC unroll 4
  for (int k = 0; k < count; ++k) {
    note<T>(call, index + k, scale[k]);
    write_any(call.streams, row[k].x, row[k].y, n, scale[k], call);
  }
}

/// Where rows_in_turns() is the faster way: rows of two turns at least. Three long rows of layer
/// norm would not stay in L1 together (4096x4096 on a 2-core Zen 4 vCPU: 20 GB/s in place of 25).
/// Within the caches it was tried on that CPU alone, and there with layer norm: 1024x256 with one
/// thread from .91 to .97 of Eigen's speed to 1.05 to 1.25.
template <class T>
bool goes_in_turns(const Call& call) {
  if (call.args->residual.data != nullptr || call.n < 2 * chains * lanes<T>) return false;
  const bool layer = call.args->kind == NormKind::layer;
  if (!call.streams && !(layer && from_dram)) return false;
  return call.n <= (layer ? short_row : block);
}

/// Where rows_turned() is the faster way: enough rows, of so few elements.
bool goes_turned(const Call& call) {
  const Collapsed<6>& rows = call.lines.rows;
  return call.n >= 1 && call.n <= turned_row && call.lines.columns.rank <= 1 && rows.rank >= 1 &&
         rows.shape[rows.rank - 1] >= 8;
}

template <class T>
void rows_along(const RowsJob& job) {
  const Call& call = *job.call;
  const Norm::Args& args = *call.args;
  std::int64_t index = job.begin;
  if (goes_turned(call)) return rows_turned<T>(job);
  if (goes_in_turns<T>(call)) {
    if (index == job.end) return;
    if (!call.streams) return rows_in_turns<T, true, false>(job);
    args.kind == NormKind::layer ? rows_in_turns<T, true, true>(job)
                                 : rows_in_turns<T, false, true>(job);
    index = job.end;
  } else if (call.n <= short_row) {
    for (; index + together <= job.end; index += together) {
      short_rows<T, together>(call, index, job.end);
    }
    for (; index < job.end; ++index) short_rows<T, 1>(call, index, job.end);
  }
  for (; index < job.end; ++index) {
    const Row<T> row = row_at<T>(call, index);
    const T* next =
        static_cast<const T*>(args.x.data) +
        call.lines.rows.template offset<norm_lines::row_x>(std::min(index + 1, job.end - 1));
    const auto scale =
        scale_along<T>(args, row.x, row.residual, row.s, call.n, {next, is_far(call)});
    note<T>(call, index, scale);
    const T* s = row.residual != nullptr ? row.s : row.x;
    // A row of several blocks is written from L2, which takes long enough to fetch all of the next.
    const T* fetch = call.n > block && call.n <= fits_twice_in_l2 ? next : nullptr;
    write_any(call.streams, s, row.y, call.n, scale, call, 0, {fetch, is_far(call)});
  }
  if (call.streams) hwy::FlushStream();
}

template <class T>
void rows_gathered(const RowsJob& job) {
  const Call& call = *job.call;
  const Norm::Args& args = *call.args;
  T* const x = static_cast<T*>(job.scratch);
  T* const residual = x + call.n;
  const auto& columns = call.lines.columns;
  std::int64_t at[6];
  for (std::int64_t index = job.begin; index < job.end; ++index) {
    const Row<T> row = row_at<T>(call, index);
    for (std::int64_t i = 0; i < call.n; ++i) {
      columns.offsets(i, at);
      x[i] = row.x[at[norm_lines::column_x]];
      if (row.residual != nullptr) residual[i] = row.residual[at[norm_lines::column_residual]];
    }
    const auto scale =
        scale_along<T>(args, x, row.residual != nullptr ? residual : nullptr, x, call.n, {x});
    note<T>(call, index, scale);
    if (args.sum.data != nullptr) {
      for (std::int64_t i = 0; i < call.n; ++i) {
        row.s[columns.template offset<norm_lines::column_sum>(i)] = x[i];
      }
    }
    write_any<T>(false, x, x, call.n, scale, call);
    for (std::int64_t i = 0; i < call.n; ++i) {
      row.y[columns.template offset<norm_lines::column_y>(i)] = x[i];
    }
  }
}

template <class T>
void rows(const RowsJob& job) {
  switch (job.call->access) {
    case Access::along:
      return rows_along<T>(job);
    case Access::across:
      return rows_across<T>(job);
    case Access::gathered:
      return rows_gathered<T>(job);
  }
}

template <class T>
void statistics(const BlocksJob& job) {
  const Call& call = *job.call;
  const bool layer = call.args->kind == NormKind::layer;
  const std::int64_t blocks = blocks_of(call.n);
  for (std::int64_t at = job.begin; at < job.end; ++at) {
    const Row<T> row = row_at<T>(call, at / blocks);
    const std::int64_t first = at % blocks * block;
    const std::int64_t count = std::min(block, call.n - first);
    const T* s = row.x + first;
    if (row.residual != nullptr) {
      add(row.x + first, row.residual + first, row.s + first, count);
      s = row.s + first;
    }
    job.moments[at] = CombinedMoments<Wide<T>>::widened(
        moments_of<T>(s, count, layer, {row.x + first + count, is_far(call)}));
  }
}

template <class T>
void write_blocks(const BlocksJob& job) {
  const Call& call = *job.call;
  const Norm::Args& args = *call.args;
  const std::int64_t blocks = blocks_of(call.n);
  for (std::int64_t at = job.begin; at < job.end;) {
    const std::int64_t index = at / blocks;
    const std::int64_t end = std::min(job.end, (index + 1) * blocks);
    const Row<T> row = row_at<T>(call, index);
    CombinedMoments<Wide<T>> combined(call.n);
    for (std::int64_t b = 0; b < blocks; ++b) {
      combined.add(job.moments[index * blocks + b], std::min(block, call.n - b * block));
    }
    const auto scale = combined.scale(args.epsilon);
    if (at % blocks == 0) note<T>(call, index, scale);
    const std::int64_t first = at % blocks * block;
    const std::int64_t count = std::min(call.n - first, (end - at) * block);
    const T* s = row.residual != nullptr ? row.s : row.x;
    write_any(call.streams, s + first, row.y + first, count, scale, call, first);
    at = end;
  }
  if (call.streams) hwy::FlushStream();
}

template <class T>
void widen(const void* from, std::int64_t n, void* to) {
  const Tag<T> d;
  const T* x = static_cast<const T*>(from);
  auto* y = static_cast<Wide<T>*>(to);
  std::int64_t i = 0;
  for (; i + lanes<T> <= n; i += lanes<T>) hn::StoreU(load_as(d, x + i), d, y + i);
  if (i < n) {
    const auto left = static_cast<std::size_t>(n - i);
    hn::BlendedStore(load_as_n(d, x + i, left), hn::FirstN(d, left), d, y + i);
  }
}

Kernels kernels() {
  using T = RUNG_SPLIT_TYPE;
  return {rows<T>, statistics<T>, write_blocks<T>, widen<T>};
}

}  // namespace
}  // namespace rung::norm_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::norm_cpu {
HWY_EXPORT(kernels);
template <>
Kernels kernels_for<RUNG_SPLIT_TYPE>() {
  return HWY_DYNAMIC_DISPATCH(kernels)();
}
}  // namespace rung::norm_cpu

#if RUNG_SPLIT_ONCE
namespace rung {
namespace {

double estimate(const Norm::Args& args, const Context&) { return norm_cpu::seconds(args, 1); }

void run(const Norm::Args& args, Context& context) { norm_cpu::normalize(args, context, 1); }

const Rung<Norm> self{{.name = "row_pipeline",
                       .step = 80,
                       .after = "non_temporal",
                       .estimate = estimate,
                       .run = run}};

}  // namespace
}  // namespace rung
#endif
#endif
