// SPDX-License-Identifier: Apache-2.0
// softmax / row pipeline
//
// Idea     Software pipeline over rows: one loop stores row r, exponentiates row r + 1 and finds
//          the maximum of row r + 2, vector by vector. Loads and stores overlap with the FMA units
//          throughout, and no row waits for the last exponential of its sum.
// Changes  Against non_temporal: the three passes run on three rows in one loop (pipeline_rows).
//          Non-temporal stores are used only if x and y together exceed L3; a row is then stored
//          from its end (4K aliasing). All arguments are supported: rows longer than 65536 elements
//          in pieces of 8192 whose maxima and sums are combined, strided rows gathered into a
//          buffer, f64, f16 and bf16, and the logarithm.
// Cost     x is read once, y written once: the compulsory 8 bytes per f32 element, and some 15
//          operations per vector. Long rows read x twice.
// Limits   One thread. EXPERIMENTS.md has other polynomials, prefetch distances, block sizes.
// Source   M. Lam, Software pipelining, 1988.
#include "rung/cpu/foreach_target.hpp"

#include <hwy/cache_control.h>
#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "rung/cpu/ahead.hpp"
#include "rung/cpu/row-inl.hpp"
#include "rung/cpu/split.hpp"  // types: float double f16 bf16
#include "rung/ops/softmax/cpu/detail/steps.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::softmax_cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
using namespace cpu::HWY_NAMESPACE;

/// Prefetch distance in bytes (4096x4096 f32 on a 2-core Zen 5 vCPU, one thread: 2.7 ms with 4 KiB,
/// 2.5 with 8, 2.7 with 16).
constexpr std::int64_t prefetch_distance = 8 << 10;

constexpr std::int64_t piece = cpu::row_piece;

/// Returns the distance in elements between two kept rows of exponentials: whole cache lines.
inline std::int64_t padded_length(std::int64_t length) { return round_up(length, 16); }

/// Returns whether y is stored non-temporally: x and y together exceed L3, and y is not x and is
/// aligned to its elements.
inline bool bypasses_caches(const Softmax::Args& args) {
  return args.y.data != args.x.data &&
         reinterpret_cast<std::uintptr_t>(args.y.data) % size_of(args.y.dtype) == 0 &&
         cpu::rows_bypass_caches(args.length(), args.count(),
                                 static_cast<std::int64_t>(size_of(args.y.dtype)),
                                 static_cast<std::int64_t>(size_of(args.x.dtype)));
}

/// Writes the results of a row from the exponentials that row_sum kept.
template <class Sum, class Y>
HWY_INLINE void write_kept(const Sum* kept, Y* y, std::int64_t length, Sum sum, bool stream) {
  const Full<Sum> d;
  const auto factor = hn::Set(d, reciprocal(sum));
  write_row<Sum>(y, length, stream, [&](std::int64_t i, auto... n) HWY_ATTR RUNG_ALWAYS_INLINE {
    return hn::Mul(load_some(d, kept + i, n...), factor);
  });
}
/// Writes the results of a row by recomputing exponentials from x, with prefetch distance `ahead`.
template <class Sum, class T, class Y>
HWY_NOINLINE void write_again(const T* x, Y* y, std::int64_t length, Sum maximum, Sum sum,
                              Sum scale, bool stream, std::int64_t ahead) {
  const Full<Sum> d;
  const auto high = hn::Set(d, maximum);
  const auto exponent = hn::Set(d, scale * log2_e<Sum>);
  const auto factor = hn::Set(d, reciprocal(sum));
  write_row<Sum>(y, length, stream, [&](std::int64_t i, auto... n) HWY_ATTR RUNG_ALWAYS_INLINE {
    prefetch(x + ahead + i);
    const auto difference = hn::Sub(load_some(d, x + i, n...), high);
    return hn::Mul(exp2<false>(d, hn::Mul(difference, exponent)), factor);
  });
}
/// Writes the logarithms of the results of a row.
template <class Sum, class T, class Y>
HWY_INLINE void write_log(const T* x, Y* y, std::int64_t length, Sum maximum, Sum sum, Sum scale,
                          bool stream) {
  const Full<Sum> d;
  const auto high = hn::Set(d, maximum);
  const auto factor = hn::Set(d, scale);
  const auto shift = hn::Set(d, logarithm(sum));
  write_row<Sum>(y, length, stream, [&](std::int64_t i, auto... n) HWY_ATTR RUNG_ALWAYS_INLINE {
    return hn::MulSub(hn::Sub(load_some(d, x + i, n...), high), factor, shift);
  });
}

/// A row's maximum, and the sum of its exponentials relative to it.
template <class Sum>
struct RowStatistics {
  Sum maximum;
  Sum sum;
};

/// Row pointers of the pipeline's three stages: store, exponentiate, find the maximum.
template <class T, class Y>
struct PipelineStages {
  const T* x;
  Y* y;
  const T* next;
  const T* after_next;
  cpu::PrefetchedRows<T> coming;  // prefetched if y is streamed
};

/// Runs one iteration of the pipeline, vector by vector: stores row r, exponentiates row r + 1,
/// finds the maximum of row r + 2. Memory and arithmetic overlap, and no row waits for the last
/// exponential of its sum (2-core Zen 4 vCPU, one thread, against three separate passes: 47 GB/s
/// instead of 36 for 64x1024 in L2, 34 instead of 28 for 16384x1024 in memory). `streams`:
/// non-temporal stores, from the end of the row, which avoids 4K aliasing between stores of y and
/// loads of x (16384x1024: 26 GB/s if stored from its beginning). `made` receives the exponentials
/// of row r + 1, `kept` holds those of row r; they must be disjoint if `streams`, else may be the
/// same memory, which saves half of L1.
template <bool log, bool streams, class Sum, class T, class Y>
HWY_INLINE void pipeline_rows(const PipelineStages<T, Y>& rows, std::int64_t length, Sum scale,
                              const RowStatistics<Sum>& here, RowStatistics<Sum>& next,
                              Sum& maximum_after, const Sum* kept, Sum* made) {
  using Stored = StoredTag<Y, Full<Sum>>;
  using Bits = hn::TFromD<Stored>;
  const Full<Sum> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  constexpr std::int64_t line = 64 / static_cast<std::int64_t>(sizeof(T));
  const auto high = hn::Set(d, here.maximum);
  const auto factor = hn::Set(d, log ? scale : reciprocal(here.sum));
  const auto shift = hn::Set(d, log ? logarithm(here.sum) : Sum{0});
  const auto next_high = hn::Set(d, next.maximum);
  const auto exponent = hn::Set(d, scale * log2_e<Sum>);
  const auto result = [&](std::int64_t i, auto... n) HWY_ATTR RUNG_ALWAYS_INLINE {
    if constexpr (log) {
      return hn::MulSub(hn::Sub(load_some(d, rows.x + i, n...), high), factor, shift);
    } else {
      return hn::Mul(load_some(d, kept + i, n...), factor);
    }
  };
  const std::int64_t head = streams ? std::min(before_vectors<Sum>(rows.y), length) : 0;
  const std::int64_t whole = (length - head) / (4 * lanes) * (4 * lanes);
  const std::int64_t behind = head + whole;
  if (head > 0) {
    const auto count = static_cast<std::size_t>(head);
    store_as_n(result(0, count), d, rows.y, count);
  }
  write_row<Sum>(rows.y + behind, length - behind, streams,
                 [&](std::int64_t i, auto... n)
                     HWY_ATTR RUNG_ALWAYS_INLINE { return result(behind + i, n...); });
  if (streams) rows.coming.prefetch_from(whole, prefetch_into_l2);
  Chains<Sum> sums(0);
  Chains<Sum> maxima(no_maximum<Sum>);
  for (std::int64_t i = 0; i < whole; i += 4 * lanes) {
    const std::int64_t out = streams ? behind - 4 * lanes - i : i;
    const T* ahead = rows.coming.place(i);
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) {
      const std::int64_t at = i + c * lanes;
      const std::int64_t to = out + c * lanes;
      if (streams && c * lanes % line == 0) prefetch(ahead + c * lanes);
      maxima.at[c] = hn::Max(load_as(d, rows.after_next + at), maxima.at[c]);
      if constexpr (streams) {
        hn::Stream(narrow<Y>(d, result(to)), Stored(), reinterpret_cast<Bits*>(rows.y + to));
      } else {
        store_as(result(to), d, rows.y + to);
      }
      const auto difference = hn::Sub(load_as(d, rows.next + at), next_high);
      const auto e = exp2<false>(d, hn::Mul(difference, exponent));
      if constexpr (!log) hn::StoreU(e, d, made + at);
      sums.at[c] = hn::Add(sums.at[c], e);
    }
  }
  add_exponentials<!log>(sums, rows.next + whole, length - whole, next.maximum, scale, made + whole,
                         static_cast<const T*>(nullptr));
  take_maximum(maxima, rows.after_next + whole, length - whole);
  next.sum = sums.sum();
  maximum_after = maxima.maximum();
}

/// One thread's part of the rows, for one combination of types.
template <class T, class Y>
class SoftmaxRows {
 public:
  using Sum = Accumulator<T>;

  SoftmaxRows(const Softmax::Args& args, bool stream, void* scratch)
      : args_(args),
        x_(static_cast<const T*>(args_.x.data)),
        y_(static_cast<Y*>(args_.y.data)),
        scale_(static_cast<Sum>(args_.scale)),
        stream_(stream),
        scratch_(static_cast<Sum*>(scratch)) {}

  void rows(cpu::Range share) const {
    if (share.size() <= 0) return;
    if (stream_)
      return args_.log ? row_pipeline<true, true>(share) : row_pipeline<false, true>(share);
    return args_.log ? row_pipeline<true, false>(share) : row_pipeline<false, false>(share);
  }

  void gathered(cpu::Range share) const {
    // Use a contiguous row of the arithmetic type for x and y, after the space for exponentials.
    const std::int64_t length = args_.length();
    Sum* const row_x = scratch_ + length;
    for (std::int64_t row = share.begin; row < share.end; ++row) {
      const T* const x = x_of(row);
      for (std::int64_t i = 0; i < length; ++i) {
        row_x[i] = static_cast<Sum>(x[i * args_.rows.steps[0]]);
      }
      SoftmaxRows<Sum, Sum>(args_, scale_, scratch_).one_row(row_x, row_x, scratch_);
      Y* const y = y_of(row);
      for (std::int64_t i = 0; i < length; ++i) {
        y[i * args_.rows.steps[1]] = static_cast<Y>(row_x[i]);
      }
    }
  }

  /// Computes long rows, each split over all threads by pieces. Pieces do not depend on the thread
  /// count and are combined in a fixed order, so results are bitwise equal for any number of
  /// threads.
  void long_rows(const cpu::Team& team, Sum* maxima) const {
    const std::int64_t length = args_.length();
    const std::int64_t pieces = cpu::row_pieces(length);
    Sum* sums = maxima + pieces;
    const cpu::Range share = team.share(pieces);
    // From the last row to the first: if x exceeds the caches, they hold its end after x was just
    // written or read (8x1000000 on a 2-core Zen 5 vCPU: 2.1 ms instead of 2.3).
    for (std::int64_t row = args_.count() - 1; row >= 0; --row) {
      const T* x = x_of(row);
      for (std::int64_t p = share.begin; p < share.end; ++p) {
        const std::int64_t first = p * piece;
        const std::int64_t count = std::min(piece, length - first);
        maxima[p] = row_maximum<Sum>(x + first, count);
        const T* fetch = p + 1 < share.end ? x + first + piece : nullptr;
        sums[p] = row_sum<false>(x + first, count, maxima[p], scale_, scratch_, fetch);
      }
      team.wait();
      Sum maximum = no_maximum<Sum>;
      Sum sum = 0;
      for (std::int64_t p = 0; p < pieces; ++p) maximum = std::max(maximum, maxima[p]);
      for (std::int64_t p = 0; p < pieces; ++p) {
        sum += sums[p] * std::exp((maxima[p] - maximum) * scale_);
      }
      const std::int64_t first = share.begin * piece;
      write(x + first, y_of(row) + first, std::min(share.end * piece, length) - first, maximum,
            sum);
      team.wait();  // before the maxima of the next row are written
    }
  }

 private:
  template <class, class>
  friend class SoftmaxRows;

  HWY_INLINE const T* x_of(std::int64_t row) const { return x_ + args_.rows.offset<0>(row); }
  HWY_INLINE Y* y_of(std::int64_t row) const { return y_ + args_.rows.offset<1>(row); }

  /// Constructs the pipeline for rows that were gathered.
  SoftmaxRows(const Softmax::Args& args, Sum scale, Sum* scratch)
      : args_(args), scale_(scale), scratch_(scratch) {}

  /// Runs the pipeline: stores row r, exponentiates r + 1, finds the maximum of r + 2. Past the
  /// end, the last row is repeated.
  template <bool log, bool streams>
  void row_pipeline(cpu::Range share) const {
    const std::int64_t length = args_.length();
    const auto at = [&](std::int64_t row) { return std::min(row, share.end - 1); };
    const T* x = x_of(share.begin);
    Y* y = y_of(share.begin);
    const T* next_x = x_of(at(share.begin + 1));
    Y* next_y = y_of(at(share.begin + 1));
    const std::int64_t ahead =
        cpu::elements_ahead(prefetch_distance, x_of(at(share.begin + 2)), y, prefetch_into_l2);
    const std::int64_t rows_ahead = 2 + ahead / length;
    const T* coming = x_of(at(share.begin + rows_ahead));
    Sum* kept = scratch_;
    Sum* made = streams ? scratch_ + padded_length(length) : scratch_;
    RowStatistics<Sum> here{row_maximum<Sum>(x, length), 0};
    here.sum = exponentials(x, here.maximum, kept);
    RowStatistics<Sum> next{0, 0};
    if (share.size() > 1) next.maximum = row_maximum<Sum>(next_x, length);
    for (std::int64_t row = share.begin; row + 1 < share.end; ++row) {
      const T* after = x_of(at(row + 2));
      Y* after_y = y_of(at(row + 2));
      const T* then = streams ? x_of(at(row + rows_ahead + 1)) : coming;
      const PipelineStages<T, Y> rows{x, y, next_x, after, {coming, then, ahead % length, length}};
      Sum maximum_after;
      pipeline_rows<log, streams>(rows, length, scale_, here, next, maximum_after, kept, made);
      here = next;
      next.maximum = maximum_after;
      x = next_x;
      y = next_y;
      next_x = after;
      next_y = after_y;
      coming = then;
      std::swap(kept, made);
    }
    write_results(x, y, here.maximum, here.sum, kept);
  }

  HWY_NOINLINE void one_row(const T* x, Y* y, Sum* kept) const {
    const Sum maximum = row_maximum<Sum>(x, args_.length());
    write_results(x, y, maximum, exponentials(x, maximum, kept), kept);
  }

  /// Returns the row's sum; stores its exponentials in `kept`, except for the logarithm.
  HWY_INLINE Sum exponentials(const T* x, Sum maximum, Sum* kept) const {
    const std::int64_t length = args_.length();
    if (args_.log) return row_sum<false, Sum, T>(x, length, maximum, scale_, kept, nullptr);
    return row_sum<true, Sum, T>(x, length, maximum, scale_, kept, nullptr);
  }
  HWY_INLINE void write_results(const T* x, Y* y, Sum maximum, Sum sum, const Sum* kept) const {
    if (args_.log) {
      write_log(x, y, args_.length(), maximum, sum, scale_, stream_);
    } else {
      write_kept(kept, y, args_.length(), sum, stream_);
    }
  }

  void write(const T* x, Y* y, std::int64_t length, Sum maximum, Sum sum) const {
    if (length <= 0) return;
    if (args_.log) {
      write_log(x, y, length, maximum, sum, scale_, stream_);
    } else {
      // Start with the last pieces, which are still in L2.
      for (std::int64_t first = (length - 1) / piece * piece; first >= 0; first -= piece) {
        write_again(x + first, y + first, std::min(piece, length - first), maximum, sum, scale_,
                    stream_, -piece);
      }
    }
  }

  const Softmax::Args& args_;
  const T* x_ = nullptr;
  Y* y_ = nullptr;
  Sum scale_;
  bool stream_ = false;
  Sum* scratch_;
};

template <class T, class Y>
void softmax_rows(const Softmax::Args& args, const cpu::RowTeam& rows, const cpu::Team& team) {
  const bool stream = rows.access != cpu::RowAccess::gathered && bypasses_caches(args);
  const SoftmaxRows<T, Y> kernel(args, stream, rows.scratch(team));
  switch (rows.access) {
    case cpu::RowAccess::contiguous:
      kernel.rows(team.share(args.count()));
      break;
    case cpu::RowAccess::gathered:
      kernel.gathered(team.share(args.count()));
      break;
    case cpu::RowAccess::long_rows:
      kernel.long_rows(team, static_cast<Accumulator<T>*>(rows.shared()));
      break;
  }
  if (stream) hwy::FlushStream();
}

/// Returns the kernel for the type of y: x's type or, for 16-bit x, f32.
RowKernel* kernel_for(DType y) {
  using T = RUNG_SPLIT_TYPE;
  if constexpr (sizeof(T) == 2) {
    if (y == DType::f32) return softmax_rows<T, float>;
  }
  return softmax_rows<T, T>;
}

}  // namespace
}  // namespace rung::softmax_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace softmax_cpu {
HWY_EXPORT(kernel_for);

/// Returns the kernel for x of type T (float, double, f16 or bf16); one object file per type.
template <class T>
RowKernel* kernel_for(DType y);
template <>
RowKernel* kernel_for<RUNG_SPLIT_TYPE>(DType y) {
  return HWY_DYNAMIC_DISPATCH(kernel_for)(y);
}

#if RUNG_SPLIT_ONCE
cpu::RowTeam divide(const Softmax::Args& args, Context& context, int threads) {
  // Scratch per thread: one or two rows of exponentials; for gathered rows, one and the row itself.
  using namespace HWY_NAMESPACE;
  const bool two = !args.rows.are_contiguous() || bypasses_caches(args);
  const std::int64_t elements = padded_length(args.length()) * (two ? 2 : 1);
  const bool is_long = cpu::row_access(args.rows) == cpu::RowAccess::long_rows;
  const std::int64_t size = args.x.dtype == DType::f64 ? 8 : 4;
  // Threads share one maximum and one sum per piece of a long row.
  return {context, args.rows, threads, is_long ? 0 : elements * size,
          is_long ? 2 * cpu::row_pieces(args.length()) * size : 0};
}

RowKernel* row_pipeline(const Softmax::Args& args) {
  return visit<float, double, f16, bf16>(args.x.dtype,
                                         [&]<class T>() { return kernel_for<T>(args.y.dtype); });
}
#endif
}  // namespace softmax_cpu

#if RUNG_SPLIT_ONCE
namespace {

Work work(const Softmax::Args& args, const Context&) {
  return cpu::row_facts(args.rows, args.x.dtype, 1);
}

void run(const Softmax::Args& args, Context& context) {
  using namespace softmax_cpu;
  if (!args.empty()) row_pipeline(args)(args, divide(args, context, 1), cpu::Team(0, 1, nullptr));
}

const Rung<Softmax> self{
    {.name = "row_pipeline", .step = 80, .after = "non_temporal", .work = work, .run = run}};

}  // namespace
#endif
}  // namespace rung
#endif
