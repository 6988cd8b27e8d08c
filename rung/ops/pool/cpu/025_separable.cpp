// SPDX-License-Identifier: Apache-2.0
// pool / separable
//
// Idea     A maximum of maxima, a sum of sums: the rows of a window are combined, column by column,
//          into a line with the padding at its ends, and windows are combined along the line.
//          Windows that overlap in a row share their columns, and no window needs an edge case.
// Changes  Against simd: kh + kw operations per output instead of kh kw. The line stays in L1 in
//          the arithmetic type, so that one kernel serves every type, kind and stride. Several
//          short rows share a line; if a window is a whole plane, vectors are accumulated over it,
//          and their lanes combined once.
// Cost     x is loaded kh / sh times, all but the first from the caches, and stored to a line once.
// Limits   One thread. Weighted sums and positions of maxima are not separable: all rows of a
//          window are stored, and kh kw operations remain. Contiguous channels use
//          shapes/contiguous_channels; if lines exceed the scratch memory, 015_clipped is used.
// Source   van Herk, A fast algorithm for local minimum and maximum filters, 1992, has the next
//          step: 3 operations for any kw, which pays for larger windows than pooling has.
#include "rung/cpu/foreach_target.hpp"

#include <algorithm>
#include <cmath>

#include "rung/core/integer.hpp"
#include "rung/ops/pool/cpu/detail/results-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::pool_cpu::HWY_NAMESPACE {
namespace {

/// Lengths of a thread's lines, and of a block: the windows of an output row computed together.
struct SeparableLines {
  const Pool::Args& args;
  bool is_separable;
  bool fit;              // a window's lines fit in max_line_elements
  std::int64_t kept;     // lines: one of column results, or all of a window
  std::int64_t windows;  // per block

  explicit SeparableLines(const Pool::Args& call)
      : args(call), is_separable(call.kind() != Pooling::weighted && !call.has_indices()) {
    constexpr std::int64_t block_elements = 1 << 13;  // 32 KiB of f32; rows are rarely longer
    kept = is_separable ? 1 : args.rows.kernel;
    fit = kept <= max_line_elements / (span() + 3 * slack);  // at least one window
    // Adjacent blocks both compute the `span` columns that they share, so a block spans at least
    // twice as many.
    const std::int64_t longest =
        std::min(std::max(block_elements / kept, 2 * span()), max_line_elements / kept);
    windows = std::clamp<std::int64_t>((longest - span()) / args.columns.stride + 1, 1,
                                       std::max<std::int64_t>(1, args.columns.out));
  }
  /// Returns the columns from the first tap of a window to its last one.
  [[nodiscard]] std::int64_t span() const {
    return (args.columns.kernel - 1) * args.columns.dilation + 1;
  }
  /// Returns the used elements of a line: the span of a block's windows, including the padding.
  [[nodiscard]] std::int64_t used() const { return (windows - 1) * args.columns.stride + span(); }
  /// Returns the distance of consecutive lines: a multiple of the stride, so that windows align.
  [[nodiscard]] std::int64_t pitch() const { return round_up(used(), args.columns.stride); }
  /// Returns the number of output rows of a channel that are computed together, with consecutive
  /// lines; more than one only if rows are short.
  [[nodiscard]] std::int64_t rows_at_once() const {
    constexpr std::int64_t elements = 1024;
    if (!is_separable) return 1;
    return std::clamp<std::int64_t>(elements / pitch(), 1,
                                    std::max<std::int64_t>(1, args.rows.out));
  }
  [[nodiscard]] std::int64_t line() const {
    return round_up((rows_at_once() - 1) * pitch() + used() + 2 * slack, slack);
  }
  /// Returns the number of elements of the results, of the positions and of the divisors, each.
  [[nodiscard]] std::int64_t results() const {
    const std::int64_t rows = rows_at_once();
    const std::int64_t of_rows = rows > 1 ? rows * ceil_div(pitch(), args.columns.stride) : 0;
    return round_up(std::max(windows, of_rows) + slack, slack);
  }
  [[nodiscard]] std::int64_t scratch_elements() const { return kept * line() + 3 * results(); }
};

template <class T>
class SeparableRows {
 public:
  using S = Accumulator<T>;
  using I = PositionOf<S>;

  SeparableRows(const Pool::Args& args, const void* weights, std::byte* scratch)
      : args_(args),
        columns_(args.columns),
        geometry_(args),
        weights_(static_cast<const S*>(weights)),
        line_(geometry_.line()),
        outputs_(args.columns.out),
        lines_(reinterpret_cast<S*>(scratch)),
        results_(lines_ + geometry_.kept * line_),
        positions_(reinterpret_cast<I*>(results_ + geometry_.results())),
        divisors_(divisors_for<T>(args, results_ + 2 * geometry_.results())) {}

  template <class Op>
  void run(cpu::Range units) {
    if (has_whole_planes()) return planes<Op>(units);
    std::fill(lines_, lines_ + geometry_.kept * line_, Op::identity);
    const std::int64_t at_once = geometry_.rows_at_once();
    for (std::int64_t unit = units.begin; unit < units.end;) {
      const std::int64_t n = unit / args_.rows.out / args_.channels();
      const std::int64_t c = unit / args_.rows.out % args_.channels();
      const std::int64_t oh = unit % args_.rows.out;
      const std::int64_t rows = std::min({at_once, args_.rows.out - oh, units.end - unit});
      if (at_once > 1) {
        output_rows<Op>(n, c, oh, rows);
      } else {
        for (std::int64_t first = 0; first < columns_.out; first += geometry_.windows) {
          output_block<Op>(n, c, oh, first, std::min(geometry_.windows, columns_.out - first));
        }
      }
      unit += rows;
    }
  }

 private:
  static constexpr hn::ScalableTag<S> d{};
  using V = hn::Vec<hn::ScalableTag<S>>;
  static HWY_INLINE std::int64_t lanes() { return static_cast<std::int64_t>(hn::Lanes(d)); }

  /// Returns whether a window is a whole image of contiguous rows.
  [[nodiscard]] bool has_whole_planes() const {
    const auto all = [](const PoolAxis& axis) {
      return axis.kernel == axis.in && axis.out == 1 && axis.padding == 0 && axis.dilation == 1;
    };
    const Extents& strides = args_.x.strides;
    return geometry_.is_separable && all(args_.rows) && all(columns_) && strides[3] == 1 &&
           strides[2] == columns_.in;
  }

  /// Combines planes, each as one run of elements, into one vector of partial results per plane.
  /// The vectors of as many planes as there are lanes are transposed and combined: lane k holds the
  /// result of plane k.
  template <class Op>
  void planes(cpu::Range units) {
    constexpr std::int64_t at_once = hn::MaxLanes(d);
    HWY_ALIGN S parts[at_once * at_once];
    const hn::RebindToSigned<hn::ScalableTag<S>> di;
    const auto rows = hn::Mul(hn::Iota(di, 0), hn::Set(di, static_cast<I>(at_once)));
    const std::int64_t size = args_.rows.in * columns_.in;
    for (std::int64_t unit = units.begin; unit < units.end;) {
      const std::int64_t n = unit / args_.channels();
      const std::int64_t c = unit % args_.channels();
      const std::int64_t count = std::min({at_once, args_.channels() - c, units.end - unit});
      const T* from =
          static_cast<const T*>(args_.x.data) + n * args_.x.strides[0] + c * args_.x.strides[1];
      for (std::int64_t k = 0; k < count; ++k, from += args_.x.strides[1]) {
        hn::Store(joined_run<Op>(from, size), d, parts + k * at_once);
      }
      V joined = hn::GatherIndex(d, parts, rows);
      for (std::int64_t j = 1; j < at_once; ++j) {
        joined = Op::combine(d, joined, hn::GatherIndex(d, parts + j, rows));
      }
      if (args_.kind() == Pooling::average) {
        joined = hn::Mul(joined, hn::Set(d, S{1} / static_cast<S>(size)));
      }
      if (args_.kind() == Pooling::l2) joined = hn::Sqrt(joined);
      hn::StoreU(joined, d, results_);
      const ConstTensorRef& bias = args_.options.bias;
      HWY_ALIGN S biases[at_once] = {};
      if (bias.data != nullptr) {
        load_strided(static_cast<const T*>(bias.data) + c * bias.strides[0], bias.strides[0], count,
                     biases);
      }
      finish(args_, c, biases, results_, count,
             static_cast<T*>(args_.y.data) + n * args_.y.strides[0] + c * args_.y.strides[1],
             args_.y.strides[1]);
      unit += count;
    }
  }

  /// Combines the elements of a run into the lanes of one vector.
  template <class Op>
  HWY_INLINE V joined_run(const T* from, std::int64_t size) {
    const std::int64_t n = lanes();
    const auto none = hn::Set(d, Op::identity);
    V joined[2] = {none, none};
    std::int64_t i = 0;
    for (; i + 2 * n <= size; i += 2 * n) {
      joined[0] = Op::accumulate(d, joined[0], load_as(d, from + i));
      joined[1] = Op::accumulate(d, joined[1], load_as(d, from + i + n));
    }
    for (; i < size; i += n) {
      const auto some = static_cast<std::size_t>(std::min(n, size - i));
      const V loaded = hn::IfThenElse(hn::FirstN(d, some), load_as_n(d, from + i, some), none);
      joined[0] = Op::accumulate(d, joined[0], loaded);
    }
    return Op::combine(d, joined[0], joined[1]);
  }

  /// Computes windows [first, first + count) of an output row.
  template <class Op>
  void output_block(std::int64_t n, std::int64_t c, std::int64_t oh, std::int64_t first,
                    std::int64_t count) {
    const ConstTensorRef& x = args_.x;
    outputs_ = count;
    // The line's columns begin at `start`, those within the image at `begin`.
    const std::int64_t start = columns_.start(first);
    const std::int64_t end = start + (count - 1) * columns_.stride + geometry_.span();
    const std::int64_t begin = std::max<std::int64_t>(start, 0);
    const std::int64_t width = std::min(end, columns_.in) - begin;
    const PoolTaps taps = args_.rows.taps(oh);
    if (geometry_.windows < columns_.out) {  // padding at a line's ends differs by block
      for (std::int64_t i = 0; i < geometry_.kept; ++i) {
        S* const line = lines_ + i * line_;
        std::fill(line, line + (begin - start), Op::identity);
        std::fill(line + (begin - start) + width, line + (end - start), Op::identity);
      }
    }
    const T* from = static_cast<const T*>(x.data) + n * x.strides[0] + c * x.strides[1] +
                    args_.rows.start(oh) * x.strides[2] + begin * x.strides[3];
    const std::int64_t step = args_.rows.dilation * x.strides[2];
    S* const to = lines_ + (begin - start);
    if (geometry_.is_separable) {
      join_rows<Op>(from + taps.begin * step, step, taps.count(), width, to);
      by_stride([&](auto stride) HWY_ATTR { along_line<Op, stride>(); });
    } else {
      for (std::int64_t i = taps.begin; i < taps.end; ++i) {
        join_rows<Sum<S>>(from + i * step, step, 1, width, to + i * line_);
      }
      by_stride([&](auto stride) HWY_ATTR {
        args_.has_indices() ? positions<stride>(taps) : weighted<stride>(taps);
      });
    }
    if (args_.has_indices()) store_indices(n, c, oh, taps.begin, first);
    const Pooling kind = args_.kind();
    const S* divisors = is_divided(args_) ? divisors_.of_block(oh, first, count) : nullptr;
    for (std::int64_t i = 0; kind != Pooling::max && i < count; i += lanes()) {
      const V v = hn::LoadU(d, results_ + i);
      hn::StoreU(kind == Pooling::average    ? hn::Mul(v, hn::LoadU(d, divisors + i))
                 : kind == Pooling::weighted ? hn::Div(v, hn::LoadU(d, divisors + i))
                                             : hn::Sqrt(v),
                 d, results_ + i);
    }
    const TensorRef& y = args_.y;
    T* const out = static_cast<T*>(y.data) + n * y.strides[0] + c * y.strides[1] +
                   oh * y.strides[2] + first * y.strides[3];
    finish<T, S>(args_, c, nullptr, results_, count, out, y.strides[3]);
  }

  /// Computes short output rows: their lines are consecutive, and windows are combined along all of
  /// them.
  template <class Op>
  void output_rows(std::int64_t n, std::int64_t c, std::int64_t oh, std::int64_t rows) {
    const ConstTensorRef& x = args_.x;
    const TensorRef& y = args_.y;
    const T* const image = static_cast<const T*>(x.data) + n * x.strides[0] + c * x.strides[1];
    const std::int64_t step = args_.rows.dilation * x.strides[2];
    const std::int64_t pitch = geometry_.pitch();
    const std::int64_t width = std::min(columns_.in, geometry_.used() - columns_.padding);
    for (std::int64_t r = 0; r < rows; ++r) {
      const PoolTaps taps = args_.rows.taps(oh + r);
      const T* from = image + args_.rows.start(oh + r) * x.strides[2] + taps.begin * step;
      join_rows<Op>(from, step, taps.count(), width, lines_ + r * pitch + columns_.padding);
    }
    const std::int64_t apart = pitch / columns_.stride;
    outputs_ = (rows - 1) * apart + columns_.out;
    by_stride([&](auto stride) HWY_ATTR { along_line<Op, stride>(); });
    // Windows across the ends of rows give unused results between two rows: they are dropped.
    S* const closed = results_ + geometry_.results();  // the memory of positions, unused here
    const std::int64_t out = columns_.out;
    for (std::int64_t r = 0; r < rows; ++r) {
      const S* reciprocals =
          args_.kind() == Pooling::average ? divisors_.of_block(oh + r, 0, out) : nullptr;
      for (std::int64_t i = 0; i < out; i += lanes()) {
        V v = hn::LoadU(d, results_ + r * apart + i);
        if (reciprocals != nullptr) v = hn::Mul(v, hn::LoadU(d, reciprocals + i));
        if (args_.kind() == Pooling::l2) v = hn::Sqrt(v);
        hn::StoreU(v, d, closed + r * out + i);
      }
    }
    T* const to = static_cast<T*>(y.data) + n * y.strides[0] + c * y.strides[1] + oh * y.strides[2];
    const bool one_run = y.strides[2] == out * y.strides[3];
    const std::int64_t run = one_run ? rows * out : out;
    // Last row first: the tail of a partial vector overwrites the results after it.
    for (std::int64_t r = one_run ? 0 : rows - 1; r >= 0; --r) {
      finish<T, S>(args_, c, nullptr, closed + r * out, run, to + r * y.strides[2], y.strides[3]);
    }
  }

  /// Combines `count` rows of x, `step` apart, into `width` elements of a line.
  template <class Op>
  HWY_INLINE void join_rows(const T* from, std::int64_t step, std::int64_t count,
                            std::int64_t width, S* line) {
    const std::int64_t element = args_.x.strides[3];
    if (element != 1) {
      for (std::int64_t w = 0; w < width; ++w) {
        S joined = Op::identity;
        for (std::int64_t i = 0; i < count; ++i) {
          joined = Op::accumulate(joined, static_cast<S>(from[i * step + w * element]));
        }
        line[w] = joined;
      }
      return;
    }
    const std::int64_t n = lanes();
    const auto none = hn::Set(d, Op::identity);
    std::int64_t w = 0;
    for (; w + 4 * n <= width; w += 4 * n) {
      V joined[4] = {none, none, none, none};
      for (std::int64_t i = 0; i < count; ++i) {
        const T* row = from + i * step + w;
#pragma GCC unroll 4
        for (int k = 0; k < 4; ++k) {
          joined[k] = Op::accumulate(d, joined[k], load_as(d, row + k * n));
        }
      }
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) hn::StoreU(joined[k], d, line + w + k * n);
    }
    for (; w + n <= width; w += n) {
      V joined = none;
      for (std::int64_t i = 0; i < count; ++i) {
        joined = Op::accumulate(d, joined, load_as(d, from + i * step + w));
      }
      hn::StoreU(joined, d, line + w);
    }
    if (w == width) return;
    // The padding after the row is preserved.
    const auto rest = static_cast<std::size_t>(width - w);
    V joined = none;
    for (std::int64_t i = 0; i < count; ++i) {
      joined = Op::accumulate(d, joined, load_as_n(d, from + i * step + w, rest));
    }
    store_as_n(joined, d, line + w, rest);
  }

  /// Calls f(stride) with a constant 1 or 2, or 0 for any other stride.
  template <class F>
  HWY_INLINE void by_stride(F&& f) {
    if (columns_.stride == 1) return f(std::integral_constant<int, 1>{});
    if (columns_.stride == 2) return f(std::integral_constant<int, 2>{});
    f(std::integral_constant<int, 0>{});
  }

  /// Calls f(j, elements) for the taps of windows from ow on, which begin at line[ow * stride].
  template <int stride, class F>
  HWY_INLINE void for_each_tap(const S* line, std::int64_t ow, const F& f) {
    const S* from = line + ow * columns_.stride;
    const std::int64_t kernel = columns_.kernel;
    const std::int64_t dilation = columns_.dilation;
    if constexpr (stride == 1) {
      for (std::int64_t j = 0; j < kernel; ++j) f(j, hn::LoadU(d, from + j * dilation));
    } else if constexpr (stride == 2) {
      V even, odd;
      std::int64_t j = 0;
      if (dilation == 1) {  // two taps per pair of vectors
        for (; j + 1 < kernel; j += 2) {
          hn::LoadInterleaved2(d, from + j, even, odd);
          f(j, even);
          f(j + 1, odd);
        }
      }
      for (; j < kernel; ++j) {
        hn::LoadInterleaved2(d, from + j * dilation, even, odd);
        f(j, even);
      }
    } else {
      HWY_ALIGN S gathered[hn::MaxLanes(hn::ScalableTag<S>())];
      const std::int64_t count = std::min(lanes(), outputs_ - ow);
      for (std::int64_t j = 0; j < kernel; ++j) {
        for (std::int64_t k = 0; k < lanes(); ++k) {
          gathered[k] = from[std::min(k, count - 1) * columns_.stride + j * dilation];
        }
        f(j, hn::Load(d, gathered));
      }
    }
  }

  template <class Op, int stride>
  HWY_INLINE void along_line() {
    for (std::int64_t ow = 0; ow < outputs_; ow += lanes()) {
      V joined = hn::Set(d, Op::identity);
      for_each_tap<stride>(lines_, ow,
                           [&](std::int64_t, V v) HWY_ATTR { joined = Op::combine(d, joined, v); });
      hn::StoreU(joined, d, results_ + ow);
    }
  }

  template <int stride>
  HWY_INLINE void weighted(PoolTaps taps) {
    for (std::int64_t ow = 0; ow < outputs_; ow += lanes()) {
      V sum = hn::Zero(d);
      for (std::int64_t i = taps.begin; i < taps.end; ++i) {
        const S* of_row = weights_ + i * columns_.kernel;
        for_each_tap<stride>(lines_ + i * line_, ow, [&](std::int64_t j, V v) HWY_ATTR {
          sum = hn::MulAdd(hn::Set(d, of_row[j]), v, sum);
        });
      }
      hn::StoreU(sum, d, results_ + ow);
    }
  }

  /// Computes maxima and their positions, i W + j dw from the first tap of the window's first row;
  /// -1 if no tap was greater than -infinity.
  template <int stride>
  HWY_INLINE void positions(PoolTaps taps) {
    const hn::RebindToSigned<hn::ScalableTag<S>> di;
    for (std::int64_t ow = 0; ow < outputs_; ow += lanes()) {
      V best = hn::Set(d, Maximum<S>::identity);
      auto where = hn::Set(di, I{-1});
      for (std::int64_t i = taps.begin; i < taps.end; ++i) {
        const std::int64_t row = (i - taps.begin) * args_.rows.dilation * columns_.in;
        for_each_tap<stride>(lines_ + i * line_, ow, [&](std::int64_t j, V v) HWY_ATTR {
          const auto wins = hn::Or(hn::Gt(v, best), hn::IsNaN(v));
          const auto here = hn::Set(di, static_cast<I>(row + j * columns_.dilation));
          best = hn::IfThenElse(wins, v, best);
          where = hn::IfThenElse(hn::RebindMask(di, wins), here, where);
        });
      }
      hn::StoreU(best, d, results_ + ow);
      hn::StoreU(where, di, positions_ + ow);
    }
  }

  void store_indices(std::int64_t n, std::int64_t c, std::int64_t oh, std::int64_t first_tap,
                     std::int64_t first) {
    const std::int64_t row = (args_.rows.start(oh) + first_tap * args_.rows.dilation) * columns_.in;
    for (std::int64_t i = 0; i < outputs_; ++i) {
      const std::int64_t ow = first + i;
      const std::int64_t from =
          positions_[i] >= 0 ? positions_[i] : columns_.taps(ow).begin * columns_.dilation;
      positions_[i] = static_cast<I>(row + columns_.start(ow) + from);
    }
    const Extents& strides = args_.options.indices.strides;
    store_positions(args_.options.indices,
                    n * strides[0] + c * strides[1] + oh * strides[2] + first * strides[3],
                    positions_, outputs_, strides[3]);
  }

  const Pool::Args& args_;
  const PoolAxis& columns_;
  SeparableLines geometry_;
  const S* weights_;
  std::int64_t line_;
  std::int64_t outputs_;  // windows along a line
  S* lines_;
  S* results_;
  I* positions_;
  PoolDivisors<T> divisors_;
};

}  // namespace

void separable_rows(const Pool::Args& args, const void* weights, cpu::Range units,
                    std::byte* scratch) {
  visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() HWY_ATTR {
    SeparableRows<T> rows(args, weights, scratch);
    with_operation<Accumulator<T>>(args.kind(), [&](auto operation) HWY_ATTR {
      rows.template run<decltype(operation)>(units);
    });
  });
}

}  // namespace rung::pool_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace pool_cpu {
HWY_EXPORT(separable_rows);
Kernel separable(const Pool::Args& args) {
  return {.make =
              [](const Pool::Args& a, const void* weights, cpu::Range units, std::byte* scratch) {
                HWY_DYNAMIC_DISPATCH(separable_rows)(a, weights, units, scratch);
              },
          .units = args.images() * args.channels() * args.rows.out,
          .scratch_elements = HWY_NAMESPACE::SeparableLines(args).scratch_elements()};
}

Kernel kernel_for(const Pool::Args& args) {
  const bool is_weighted = args.kind() == Pooling::weighted;
  if (is_weighted && args.taps() > max_line_elements) return clipped(args);
  if (has_contiguous_channels(args)) return contiguous_channels(args);
  bool fits = HWY_NAMESPACE::SeparableLines(args).fit;
  for (std::int64_t tap = 0; is_weighted && fits && tap < args.taps(); ++tap) {
    visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
      const auto weights = args.options.weights.view<const T, 2>();
      const std::int64_t i = tap / args.columns.kernel;
      const std::int64_t j = tap % args.columns.kernel;
      fits = std::isfinite(static_cast<Accumulator<T>>(weights(i, j)));  // 0 w must be 0
    });
  }
  return fits ? separable(args) : clipped(args);
}

Work facts(const Pool::Args& args, int threads) {
  const std::int64_t rows = args.images() * args.rows.out, columns = args.columns.out;
  if (has_contiguous_channels(args)) {
    const std::int64_t vectors = ceil_div(args.channels(), std::int64_t{16});
    return {.blocks = rows * columns, .steps = args.taps() * vectors, .threads = threads};
  }
  const bool is_separable = HWY_NAMESPACE::SeparableLines(args).is_separable;
  return {.blocks = rows * args.channels(),
          .steps = args.rows.kernel * args.columns.in +
                   columns * (is_separable ? args.columns.kernel : args.taps()),
          .threads = threads,
          .path = args.x.strides[3] != 1 ? "gathered" : ""};
}

int threads_of(const Pool::Args& args, const Context& context) {
  constexpr double min_taps = 1 << 16;  // a second thread costs some 5 us
  const double taps = static_cast<double>(args.taps()) * static_cast<double>(args.y.size());
  if (taps < min_taps) return 1;
  const std::int64_t rows = args.images() * args.rows.out;
  const std::int64_t units = has_contiguous_channels(args) ? rows : rows * args.channels();
  return static_cast<int>(std::min<std::int64_t>(context.threads(), units));
}
}  // namespace pool_cpu

namespace {
using namespace pool_cpu;

Work work(const Pool::Args& args, const Context&) { return facts(args, 1); }

void run(const Pool::Args& args, Context& context) {
  run_kernel(kernel_for(args), args, context, 1);
}

const Rung<Pool> self{{.name = "separable", .step = 25, .after = "simd", .work = work, .run = run}};

}  // namespace
}  // namespace rung
#endif
