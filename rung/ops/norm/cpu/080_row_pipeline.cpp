// SPDX-License-Identifier: Apache-2.0
// norm / row pipeline
//
// Idea     Software pipeline over rows: one loop stores row r, sums the squares of row r + 1 and
//          the elements of row r + 2, vector by vector. Loads and stores overlap throughout, and no
//          row waits for the last additions of its sums.
// Changes  Against non_temporal: the three passes run on three rows in one loop (pipeline_step);
//          non-temporal stores only if y exceeds the caches; eight accumulators instead of four.
//          All arguments are supported: long rows in blocks of 4096 elements, which stay in L1 from
//          the first to the third pass and whose moments are combined in double; strided rows
//          gathered first; residual, mean and rstd; f64, f16 and bf16.
// Cost     x is read once, y written once; 3 loads, 7 operations and a store per vector.
// Limits   One thread. EXPERIMENTS.md has prefetch distances, block sizes and other fusions.
// Source   T. Chan, G. Golub & R. LeVeque, Algorithms for computing the sample variance, 1983; M.
//          Lam, Software pipelining, 1988.
#include "rung/cpu/foreach_target.hpp"

#include <hwy/cache_control.h>

#include "rung/cpu/ahead.hpp"
#include "rung/cpu/split.hpp"  // types: float double f16 bf16
#include "rung/ops/norm/cpu/detail/call.hpp"
#include "rung/ops/norm/shared/cpu/row-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::norm_cpu::HWY_NAMESPACE {
namespace {
using cpu::HWY_NAMESPACE::narrow;
using cpu::HWY_NAMESPACE::store_as;
using cpu::HWY_NAMESPACE::store_as_n;
using cpu::HWY_NAMESPACE::StoredTag;

// --- one row -------------------------------------------------------------------------------------

/// Pointers to the first elements of a row.
template <class T>
struct Row {
  const T* x;
  const T* residual;  // null: none
  T* y;
  T* s;  // x + residual, kept in sum or, without it, in y until y is written
};

// Computes offsets one by one, not as an array: an array would be stored in one width and loaded in
// another, and such a load stalls until all earlier non-temporal stores have drained.
template <class T>
HWY_INLINE Row<T> row_at(const NormCall& call, std::int64_t index) {
  const Norm::Args& args = *call.args;
  const auto& rows = call.lines.rows;
  Row<T> row;
  row.x = static_cast<const T*>(args.x.data) + rows.template offset<norm_lines::row_x>(index);
  row.y = static_cast<T*>(args.y.data) + rows.template offset<norm_lines::row_y>(index);
  row.residual = nullptr;
  row.s = row.y;
  if (args.residual.data != nullptr) {
    row.residual = static_cast<const T*>(args.residual.data) +
                   rows.template offset<norm_lines::row_residual>(index);
    if (args.sum.data != nullptr) {
      row.s = static_cast<T*>(args.sum.data) + rows.template offset<norm_lines::row_sum>(index);
    }
  }
  return row;
}

/// Stores mean and rstd of a row, if requested.
template <class T>
HWY_INLINE void note(const NormCall& call, std::int64_t index, const Scale<Wide<T>>& scale) {
  const Norm::Args& args = *call.args;
  const auto& rows = call.lines.rows;
  if (args.mean.data != nullptr) {
    static_cast<Wide<T>*>(args.mean.data)[rows.template offset<norm_lines::row_mean>(index)] =
        scale.mean;
  }
  if (args.rstd.data != nullptr) {
    static_cast<Wide<T>*>(args.rstd.data)[rows.template offset<norm_lines::row_rstd>(index)] =
        scale.rstd;
  }
}

/// Stores s = x + residual, rounded to T; s may alias either.
template <class T>
HWY_INLINE void add(const T* x, const T* residual, T* s, std::int64_t n) {
  const Tag<T> d;
  constexpr std::int64_t step = lanes<T>;
  std::int64_t i = 0;
  for (; i + step <= n; i += step) {
    store_as(hn::Add(load_as(d, x + i), load_as(d, residual + i)), d, s + i);
  }
  if (i < n) {
    const auto count = static_cast<std::size_t>(n - i);
    const auto sum = hn::Add(load_as_n(d, x + i, count), load_as_n(d, residual + i, count));
    store_as_n(sum, d, s + i, count);
  }
}

/// Returns the scale of a contiguous row; stores x + residual in s if there is a residual.
template <class T>
HWY_INLINE Scale<Wide<T>> scale_along(const Norm::Args& args, const T* x, const T* residual, T* s,
                                      std::int64_t n, Next<T> next) {
  const bool layer = args.kind == NormKind::layer;
  const T* source = residual != nullptr ? s : x;
  if (n <= block) {
    if (residual != nullptr) add(x, residual, s, n);
    return scale_of(moments_of(source, n, layer, next), n, args.epsilon);
  }
  CombinedMoments<Wide<T>> combined(n);
  for (std::int64_t first = 0; first < n; first += block) {
    const std::int64_t count = std::min(block, n - first);
    if (residual != nullptr) add(x + first, residual + first, s + first, count);
    combined.add(moments_of<T>(source + first, count, layer, {x + first + count, next.far}), count);
  }
  return combined.scale(args.epsilon);
}

/// Writes y from s; they may be the same. `streams`: non-temporal stores. Prefetches `next`, a row
/// of the same length.
template <class T, bool streams>
HWY_INLINE void write(const T* s, T* y, std::int64_t n, const Scale<Wide<T>>& scale,
                      const Wide<T>* gamma, const Wide<T>* beta, Next<T> next) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  constexpr std::int64_t step = lanes<T>;
  const V center = hn::Set(d, scale.center);
  const V rstd = hn::Set(d, scale.rstd);
  const V shift = hn::Set(d, scale.shift);
  const auto y_of = [&](V v, V factor, V summand) HWY_ATTR {
    return hn::MulAdd(hn::MulAdd(hn::Sub(v, center), rstd, shift), factor, summand);
  };
  const V one = hn::Set(d, 1);
  const V zero = hn::Zero(d);
  const auto part = [&](std::int64_t i, std::size_t count) HWY_ATTR {
    const V factor = gamma != nullptr ? load_as_n(d, gamma + i, count) : one;
    const V summand = beta != nullptr ? load_as_n(d, beta + i, count) : zero;
    store_as_n(y_of(load_as_n(d, s + i, count), factor, summand), d, y + i, count);
  };
  std::int64_t i = 0;
  if constexpr (streams) {
    // Non-temporal stores must be aligned; two of 32 bytes (f16, bf16) fill a cache line.
    constexpr std::uintptr_t line = static_cast<std::uintptr_t>(step) * sizeof(T);
    const std::uintptr_t beyond = reinterpret_cast<std::uintptr_t>(y) % line;
    if (beyond != 0) {
      i = std::min(n, static_cast<std::int64_t>((line - beyond) / sizeof(T)));
      part(0, static_cast<std::size_t>(i));
    }
  }
  // Eight vectors at a time: non-temporal stores are faster in bunches than interleaved with loads
  // (4096x4096 on a 2-core Zen 5 vCPU: 3.9 ms against 4.2).
  constexpr int bunch = 8;
  for (; i + bunch * step <= n; i += bunch * step) {
    next.prefetch(i, bunch * step);
    V result[bunch];
    if (gamma != nullptr && beta != nullptr) {
#pragma GCC unroll 8
      for (int k = 0; k < bunch; ++k) {
        const std::int64_t at = i + k * step;
        result[k] = y_of(load_as(d, s + at), hn::LoadU(d, gamma + at), hn::LoadU(d, beta + at));
      }
    } else {
#pragma GCC unroll 8
      for (int k = 0; k < bunch; ++k) {
        const std::int64_t at = i + k * step;
        const V factor = gamma != nullptr ? hn::LoadU(d, gamma + at) : one;
        const V summand = beta != nullptr ? hn::LoadU(d, beta + at) : zero;
        result[k] = y_of(load_as(d, s + at), factor, summand);
      }
    }
#pragma GCC unroll 8
    for (int k = 0; k < bunch; ++k) {
      if constexpr (streams) {
        const StoredTag<T, Tag<T>> stored;
        using Bits = hn::TFromD<decltype(stored)>;
        hn::Stream(narrow<T>(d, result[k]), stored, reinterpret_cast<Bits*>(y + i + k * step));
      } else {
        store_as(result[k], d, y + i + k * step);
      }
    }
  }
  for (; i < n; i += step) part(i, static_cast<std::size_t>(std::min(step, n - i)));
}

/// Returns whether the next rows come from memory and are prefetched into L2.
HWY_INLINE bool is_far(const RowPipeline& call) { return call.streams && from_dram; }

template <class T>
HWY_INLINE void write_any(bool streams, const T* s, T* y, std::int64_t n,
                          const Scale<Wide<T>>& scale, const NormCall& call, std::int64_t first = 0,
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

// --- the pipeline --------------------------------------------------------------------------------

/// gamma and beta, or one vector of ones or zeros that is reused.
template <class T>
class Weights {
 public:
  HWY_INLINE Weights(const Wide<T>* gamma, const Wide<T>* beta)
      : gamma_(gamma != nullptr ? gamma : one_),
        beta_(beta != nullptr ? beta : zero_),
        gamma_mask_(gamma != nullptr ? -1 : 0),
        beta_mask_(beta != nullptr ? -1 : 0) {
    std::fill_n(one_, lanes<T>, Wide<T>{1});
  }
  HWY_INLINE hn::Vec<Tag<T>> gamma(std::int64_t at) const {
    return hn::LoadU(Tag<T>(), gamma_ + (at & gamma_mask_));
  }
  HWY_INLINE hn::Vec<Tag<T>> beta(std::int64_t at) const {
    return hn::LoadU(Tag<T>(), beta_ + (at & beta_mask_));
  }
  /// Returns gamma from element `at` on, or null if there is none; beta_from() does the same for
  /// beta.
  const Wide<T>* gamma_from(std::int64_t at) const {
    return gamma_mask_ != 0 ? gamma_ + at : nullptr;
  }
  const Wide<T>* beta_from(std::int64_t at) const { return beta_mask_ != 0 ? beta_ + at : nullptr; }

 private:
  alignas(64) Wide<T> one_[lanes<T>];
  alignas(64) Wide<T> zero_[lanes<T>] = {};
  const Wide<T>* gamma_;
  const Wide<T>* beta_;
  std::int64_t gamma_mask_;  // 0: reuse one vector
  std::int64_t beta_mask_;
};

/// Prefetch distance of x in bytes (EXPERIMENTS.md).
constexpr std::int64_t prefetch_distance = 8 << 10;
/// Prefetch distance of x if prefetched into L2 (EXPERIMENTS.md).
constexpr std::int64_t far_prefetch_distance = 12 << 10;

/// Writes elements [at, at + n), which do not fill an iteration of the pipeline.
template <class T, bool streams>
HWY_NOINLINE void write_alone(const T* s, T* y, std::int64_t at, std::int64_t n,
                              const Scale<Wide<T>>& scale, const Weights<T>& weights) {
  write<T, streams>(s + at, y + at, n, scale, weights.gamma_from(at), weights.beta_from(at), {});
}

/// Rows that the pipeline reads, n elements each: the moments of `next` about `center` are summed,
/// the elements of `behind` are summed, and further rows are prefetched.
template <class T>
struct Incoming {
  const T* next;
  const T* behind;
  cpu::PrefetchedRows<T> coming;
  std::int64_t n;
  Wide<T> center;  // of the next row
  bool far;        // prefetched into L2
};

/// Sums that one iteration of the pipeline computes.
template <class V>
struct Found {
  Moments<V> moments;  // of the row `next`
  V sum;               // of the row `behind`
};

/// Writes a row of y from s, and computes the moments of the next row and the sum of the row behind
/// it (RMS norm: only the squares of the next row). `streams`: non-temporal stores and prefetches.
/// Stores and loads alternate, vector by vector, so that they overlap and no sum stalls.
/// Alternating in bunches of 8 is slower (4096x4096, RMS, on a 2-core Zen 5 vCPU: 3.0 ms instead of
/// 2.7), row by row even more so (3.6; 65536x256, layer, on a 2-core Zen 4 vCPU: 29 GB/s instead of
/// 38). y is written from its end, because the elements of s read last are still in L1.
template <class T, bool layer, bool streams>
HWY_INLINE Found<Wide<T>> pipeline_step(const T* s, T* y, const Scale<Wide<T>>& scale,
                                        const Weights<T>& weights, const Incoming<T> in) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  constexpr std::int64_t step = lanes<T>;
  constexpr std::int64_t line = 64 / static_cast<std::int64_t>(sizeof(T));
  const StoredTag<T, Tag<T>> stored;
  using Bits = hn::TFromD<decltype(stored)>;
  const V center = hn::Set(d, scale.center);
  const V rstd = hn::Set(d, scale.rstd);
  const V shift = hn::Set(d, scale.shift);
  const V middle = hn::Set(d, in.center);
  constexpr auto vector = static_cast<std::uintptr_t>(step) * sizeof(T);
  const std::uintptr_t past = streams ? reinterpret_cast<std::uintptr_t>(y) % vector : 0;
  const auto head = static_cast<std::int64_t>((vector - past) % vector / sizeof(T));
  const std::int64_t whole = (in.n - head) / (chains * step) * (chains * step);
  // Write the head and the tail first, while no accumulators are live.
  if (head != 0) write_alone<T, streams>(s, y, 0, head, scale, weights);
  const std::int64_t left = in.n - head - whole;
  if (left != 0) write_alone<T, streams>(s, y, head + whole, left, scale, weights);
  if (streams) in.coming.prefetch_from(whole, in.far);

  V sums[chains];
  V rest[chains];
  V squares[chains];
#pragma GCC unroll 8
  for (int k = 0; k < chains; ++k) sums[k] = rest[k] = squares[k] = hn::Zero(d);
  for (std::int64_t i = 0; i < whole; i += chains * step) {
    const std::int64_t out = head + whole - chains * step - i;
    const T* ahead = in.coming.place(i);
#pragma GCC unroll 8
    for (int k = 0; k < chains; ++k) {
      if (streams && k * step % line == 0) cpu::prefetch_line(ahead + k * step, in.far);
      const V v = load_as(d, in.next + i + k * step);
      const V distance = layer ? hn::Sub(v, middle) : v;
      squares[k] = hn::MulAdd(distance, distance, squares[k]);
      if constexpr (layer) {
        rest[k] = hn::Add(rest[k], distance);
        sums[k] = hn::Add(sums[k], load_as(d, in.behind + i + k * step));
      }
      const std::int64_t at = out + k * step;
      const V z = hn::MulAdd(hn::Sub(load_as(d, s + at), center), rstd, shift);
      const V result = hn::MulAdd(z, weights.gamma(at), weights.beta(at));
      if constexpr (streams) {
        hn::Stream(narrow<T>(d, result), stored, reinterpret_cast<Bits*>(y + at));
      } else {
        store_as(result, d, y + at);
      }
    }
  }
  add_moments(rest, squares, middle, in.next, whole, in.n, {});
  if constexpr (layer) add_sum(sums, in.behind, whole, in.n);
  return {{in.center, layer ? total(d, rest) : 0, total(d, squares)},
          layer ? total(d, sums) : Wide<T>{0}};
}

/// Computes rows of one block each; a row is written while the following two are read.
template <class T, bool layer, bool streams>
void pipelined_rows(const RowPipeline& call, cpu::Range rows) {
  const Norm::Args& args = *call.args;
  const std::int64_t n = call.n;
  const Weights<T> weights(static_cast<const Wide<T>*>(call.gamma),
                           static_cast<const Wide<T>*>(call.beta));
  const auto x_of = [&](std::int64_t row) {
    return static_cast<const T*>(args.x.data) +
           call.lines.rows.template offset<norm_lines::row_x>(std::min(row, rows.end - 1));
  };
  const auto center_of = [&](Wide<T> sum) { return layer ? sum / static_cast<Wide<T>>(n) : 0; };
  constexpr std::int64_t last = layer ? 2 : 1;  // offset of the last row that is read
  const bool far = from_dram;
  const std::int64_t ahead =
      cpu::elements_ahead(far ? far_prefetch_distance : prefetch_distance, x_of(rows.begin + last),
                          row_at<T>(call, rows.begin).y, far);
  const std::int64_t rows_ahead = last + ahead / n;

  const T* s = x_of(rows.begin);
  auto scale = scale_of(moments_of<T>(s, n, layer, {}), n, args.epsilon);
  Wide<T> center = layer ? center_of(sum_of(x_of(rows.begin + 1), n)) : 0;
  for (std::int64_t index = rows.begin; index < rows.end; ++index) {
    note<T>(call, index, scale);
    T* const y = row_at<T>(call, index).y;
    if (index + 1 == rows.end) {
      write_alone<T, streams>(s, y, 0, n, scale, weights);
      break;
    }
    const T* const next = x_of(index + 1);
    const auto found = pipeline_step<T, layer, streams>(
        s, y, scale, weights,
        {next,
         x_of(index + 2),
         {x_of(index + rows_ahead), x_of(index + rows_ahead + 1), ahead % n, n},
         n,
         center,
         far});
    scale =
        scale_of(layer ? finite_moments(found.moments, next, n) : found.moments, n, args.epsilon);
    center = center_of(found.sum);
    s = next;
  }
}

// --- short rows, long rows -----------------------------------------------------------------------

/// Prefetch distance in bytes of x for groups of short rows.
constexpr std::int64_t group_prefetch_distance = 8 << 10;

/// Longest f32 row of which two fit in half of a 1 MiB L2.
constexpr std::int64_t fits_twice_in_l2 = 1 << 16;

/// Short rows are computed `together` at a time: they fit in L1.
constexpr int together = 4;
constexpr std::int64_t short_row = block / together;

/// Computes `count` short rows, pass by pass for all: the latency of one row (horizontal sums, a
/// root, a division: some 100 cycles, as long as its loops) overlaps with the others.
template <class T, int count>
HWY_INLINE void short_rows(const RowPipeline& call, std::int64_t index, std::int64_t end) {
  const Norm::Args& args = *call.args;
  const bool layer = args.kind == NormKind::layer;
  const std::int64_t n = call.n;
  // Prefetch several rows ahead: memory latency exceeds the time of one short row.
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

/// Returns whether pipelined_rows() supports the rows and is faster: rows without a residual, of at
/// least two iterations and at most short_row elements (RMS norm: a block). Three longer rows of
/// layer norm would not fit in L1 (4096x4096 on a 2-core Zen 4 vCPU: 20 GB/s instead of 25). For
/// problems within the caches it was measured on that CPU and for layer norm only: the speed of
/// 1024x256 on one thread, relative to Eigen's, rose from 0.91-0.97 to 1.05-1.25.
template <class T>
bool is_pipelined(const RowPipeline& call) {
  if (call.args->residual.data != nullptr || call.n < 2 * chains * lanes<T>) return false;
  const bool layer = call.args->kind == NormKind::layer;
  if (!call.streams && !(layer && from_dram)) return false;
  return call.n <= (layer ? short_row : block);
}

template <class T>
void contiguous_rows(const RowPipeline& call, cpu::Range rows) {
  const Norm::Args& args = *call.args;
  std::int64_t index = rows.begin;
  if (is_pipelined<T>(call)) {
    if (index == rows.end) return;
    if (!call.streams) return pipelined_rows<T, true, false>(call, rows);
    args.kind == NormKind::layer ? pipelined_rows<T, true, true>(call, rows)
                                 : pipelined_rows<T, false, true>(call, rows);
    index = rows.end;
  } else if (call.n <= short_row) {
    for (; index + together <= rows.end; index += together) {
      short_rows<T, together>(call, index, rows.end);
    }
    for (; index < rows.end; ++index) short_rows<T, 1>(call, index, rows.end);
  }
  for (; index < rows.end; ++index) {
    const Row<T> row = row_at<T>(call, index);
    const T* next =
        static_cast<const T*>(args.x.data) +
        call.lines.rows.template offset<norm_lines::row_x>(std::min(index + 1, rows.end - 1));
    const auto scale =
        scale_along<T>(args, row.x, row.residual, row.s, call.n, {next, is_far(call)});
    note<T>(call, index, scale);
    const T* s = row.residual != nullptr ? row.s : row.x;
    // A row of several blocks is written from L2, which leaves time to prefetch the whole next row.
    const T* fetch = call.n > block && call.n <= fits_twice_in_l2 ? next : nullptr;
    write_any(call.streams, s, row.y, call.n, scale, call, 0, {fetch, is_far(call)});
  }
  if (call.streams) hwy::FlushStream();
}

/// Computes strided rows: copies x and residual to contiguous memory, and the results back.
template <class T>
void gathered_rows(const RowPipeline& call, cpu::Range rows, T* x) {
  const Norm::Args& args = *call.args;
  T* const residual = x + call.n;
  const auto& columns = call.lines.columns;
  std::int64_t at[6];
  for (std::int64_t index = rows.begin; index < rows.end; ++index) {
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

/// Computes long rows, split over all threads by blocks. Blocks do not depend on the thread count,
/// and their moments are combined in a fixed order.
template <class T>
void shared_rows(const RowPipeline& call, const cpu::Team& team, Moments<double>* moments) {
  const Norm::Args& args = *call.args;
  const std::int64_t blocks = blocks_of(call.n);
  const cpu::Range share = team.share(call.rows * blocks);
  for (std::int64_t at = share.begin; at < share.end; ++at) {
    const Row<T> row = row_at<T>(call, at / blocks);
    const std::int64_t first = at % blocks * block;
    const std::int64_t count = std::min(block, call.n - first);
    const T* s = row.x + first;
    if (row.residual != nullptr) {
      add(row.x + first, row.residual + first, row.s + first, count);
      s = row.s + first;
    }
    moments[at] = CombinedMoments<Wide<T>>::widened(moments_of<T>(
        s, count, args.kind == NormKind::layer, {row.x + first + count, is_far(call)}));
  }
  team.wait();
  for (std::int64_t at = share.begin; at < share.end;) {
    const std::int64_t index = at / blocks;
    const std::int64_t end = std::min(share.end, (index + 1) * blocks);
    const Row<T> row = row_at<T>(call, index);
    CombinedMoments<Wide<T>> combined(call.n);
    for (std::int64_t b = 0; b < blocks; ++b) {
      combined.add(moments[index * blocks + b], std::min(block, call.n - b * block));
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
void rows_of(const RowPipeline& call, const cpu::Team& team) {
  if (call.shares_rows) {
    return shared_rows<T>(call, team, reinterpret_cast<Moments<double>*>(call.scratch));
  }
  const cpu::Range rows = team.share(call.rows);
  if (!call.gathered) return contiguous_rows<T>(call, rows);
  std::byte* const scratch =
      call.scratch + static_cast<std::size_t>(team.rank()) * call.scratch_bytes;
  gathered_rows(call, rows, reinterpret_cast<T*>(scratch));
}

/// Converts n contiguous elements to the arithmetic type.
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

RowKernels kernels() {
  using T = RUNG_SPLIT_TYPE;
  return {rows_of<T>, widen<T>};
}

}  // namespace
}  // namespace rung::norm_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::norm_cpu {
HWY_EXPORT(kernels);

/// Returns the kernels for x of type T (float, double, f16 or bf16); one object file per type.
template <class T>
RowKernels kernels_for();
template <>
RowKernels kernels_for<RUNG_SPLIT_TYPE>() {
  return HWY_DYNAMIC_DISPATCH(kernels)();
}

#if RUNG_SPLIT_ONCE
namespace {

RowKernels kernels_of(DType dtype) {
  return visit<float, double, f16, bf16>(dtype, []<class T>() { return kernels_for<T>(); });
}

/// Returns gamma or beta, contiguous and in the arithmetic type: the tensor itself or a copy at
/// `place`, which is advanced. Without `fill` nothing is written, only `place` is advanced.
const void* weights(const ConstTensorRef& tensor, const Collapsed<6>& columns, int which,
                    DType type, std::byte*& place, bool fill) {
  if (tensor.data == nullptr) return nullptr;
  const std::int64_t n = columns.size();
  const bool contiguous =
      columns.rank == 0 || (columns.rank == 1 && columns.strides[which][0] == 1);
  const DType arithmetic = type == DType::f64 ? DType::f64 : DType::f32;
  if (contiguous && tensor.dtype == arithmetic) return tensor.data;
  std::byte* const copy = place;
  place += static_cast<std::size_t>(n + 16) * size_of(arithmetic) / 64 * 64 + 64;
  if (!fill) return copy;
  if (contiguous && tensor.dtype == type) {
    kernels_of(type).widen(tensor.data, n, copy);
    return copy;
  }
  visit<float, double, f16, bf16>(tensor.dtype, [&]<class T>() {
    auto* to = reinterpret_cast<Accumulator<T>*>(copy);
    const auto* from = static_cast<const T*>(tensor.data);
    std::int64_t at[6];
    for (std::int64_t i = 0; i < n; ++i) {
      columns.offsets(i, at);
      to[i] = static_cast<Accumulator<T>>(from[at[which]]);
    }
  });
  return copy;
}

}  // namespace

std::byte* place_weights(NormCall& call, Context& context, std::size_t bytes) {
  const Norm::Args& args = *call.args;
  const auto place = [&](std::byte*& at, bool fill) {
    call.gamma =
        weights(args.gamma, call.lines.columns, norm_lines::column_gamma, args.x.dtype, at, fill);
    call.beta =
        weights(args.beta, call.lines.columns, norm_lines::column_beta, args.x.dtype, at, fill);
  };
  std::byte* measure = nullptr;
  place(measure, false);
  bytes += static_cast<std::size_t>(measure - static_cast<std::byte*>(nullptr));
  auto* memory = bytes > 0 ? static_cast<std::byte*>(context.workspace(bytes)) : nullptr;
  place(memory, true);
  return memory;
}

RowPipeline::RowPipeline(const Norm::Args& a, Context& context, int available)
    : NormCall(a), kernel(kernels_of(a.x.dtype).rows) {
  // Bytes up to which y is still in cache for its next reader: half of a typical last-level cache,
  // shared with x. The size reported by the system may be a sum over several caches.
  constexpr double stays_in_cache = 16 << 20;
  gathered = !rows_are_contiguous();
  // A y written in place is already in cache.
  const bool in_place = a.y.data == a.x.data || a.residual.data != nullptr;
  const double y_bytes = static_cast<double>(n * rows) * static_cast<double>(size_of(a.y.dtype));
  streams = !gathered && n >= 64 && y_bytes > stays_in_cache &&
            (!in_place || a.sum.data != nullptr) && a.y.data != a.x.data;
  if (rows * std::max<std::int64_t>(n, 1) >= min_elements) threads = available;
  // Split rows of several blocks if they are too few to keep all threads busy.
  const std::int64_t blocks = blocks_of(n);
  shares_rows = threads > 1 && !gathered && blocks > 1 && rows > 0 && rows < 4 * threads;
  // Threads without a row need no scratch.
  if (!shares_rows) threads = static_cast<int>(std::clamp<std::int64_t>(rows, 1, threads));
  if (gathered) scratch_bytes = 2 * static_cast<std::size_t>(n) * size_of(a.x.dtype);
  if (shares_rows)
    scratch_bytes = static_cast<std::size_t>(rows * blocks) * sizeof(Moments<double>);
  scratch_bytes = (scratch_bytes + 63) / 64 * 64;
  const std::size_t parts = shares_rows ? 1 : static_cast<std::size_t>(threads);
  scratch = place_weights(*this, context, parts * scratch_bytes);
}

Work row_pipeline_facts(const Norm::Args& args, int threads) {
  const NormCall call(args);
  const bool shares = call.rows_are_contiguous() && blocks_of(args.columns()) > 1;
  if (args.rows() * args.columns() < min_elements) threads = 1;
  return cpu::row_facts(
      args.rows(), args.columns(), call.rows_are_contiguous(), args.x.dtype,
      shares ? threads : static_cast<int>(std::min<std::int64_t>(threads, args.rows())));
}
#endif
}  // namespace rung::norm_cpu

#if RUNG_SPLIT_ONCE
namespace rung {
namespace {

Work work(const Norm::Args& args, const Context&) { return norm_cpu::row_pipeline_facts(args, 1); }

void run(const Norm::Args& args, Context& context) {
  const norm_cpu::RowPipeline call(args, context, 1);
  call.kernel(call, cpu::Team(0, 1, nullptr));
}

const Rung<Norm> self{
    {.name = "row_pipeline", .step = 80, .after = "non_temporal", .work = work, .run = run}};

}  // namespace
}  // namespace rung
#endif
#endif
