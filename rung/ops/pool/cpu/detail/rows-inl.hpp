// SPDX-License-Identifier: Apache-2.0
//
// Output rows of images, vectors along W: the rows of a window are joined column by column into a
// line that has the padding at its ends; windows are then taken along that line, where every
// element has already stood for kh of them. kh + kw operations instead of kh kw. Weighted sums and
// positions do not come apart so: for these the kh lines of a window are kept.
#if defined(RUNG_OPS_POOL_CPU_ROWS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_POOL_CPU_ROWS_INL_HPP_
#undef RUNG_OPS_POOL_CPU_ROWS_INL_HPP_
#else
#define RUNG_OPS_POOL_CPU_ROWS_INL_HPP_
#endif

#include <algorithm>
#include <type_traits>

#include "rung/ops/pool/cpu/detail/operations-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::pool_cpu::HWY_NAMESPACE {
namespace {

template <class T>
class RowsWorker {
 public:
  using S = Accumulator<T>;
  using I = std::conditional_t<sizeof(S) == 8, std::int64_t, std::int32_t>;

  explicit RowsWorker(const Share& share)
      : share_(share),
        call_(*share.call),
        args_(*call_.args),
        columns_(args_.columns),
        line_(call_.line()),
        outputs_(columns_.out),
        lines_(static_cast<S*>(share.scratch)),
        results_(lines_ + call_.lines() * line_),
        positions_(reinterpret_cast<I*>(results_ + call_.results())),
        divisors_(call_, results_ + 2 * call_.results()) {}

  void run() {
    with_operation<S>(args_.kind(), [&](auto operation) HWY_ATTR {
      using Op = decltype(operation);
      if (whole_planes()) return by_planes<Op>();
      std::fill(lines_, lines_ + call_.lines() * line_, Op::identity);
      by_blocks_ = call_.windows < columns_.out;
      const std::int64_t at_once = call_.rows_at_once();
      for (std::int64_t unit = share_.begin; unit < share_.end;) {
        const std::int64_t plane = unit / args_.rows.out;
        const std::int64_t oh = unit % args_.rows.out;
        const std::int64_t rows = std::min({at_once, args_.rows.out - oh, share_.end - unit});
        if (at_once > 1) {
          output_rows<Op>(plane / args_.channels(), plane % args_.channels(), oh, rows);
        } else {
          output_row<Op>(plane / args_.channels(), plane % args_.channels(), oh);
        }
        unit += rows;
      }
    });
  }

 private:
  static constexpr hn::ScalableTag<S> d{};
  using V = hn::Vec<hn::ScalableTag<S>>;
  static HWY_INLINE std::int64_t lanes() { return static_cast<std::int64_t>(hn::Lanes(d)); }

  /// A window that is all of an image of contiguous rows.
  [[nodiscard]] bool whole_planes() const {
    const auto all = [](const PoolAxis& axis) {
      return axis.kernel == axis.in && axis.out == 1 && axis.padding == 0 && axis.dilation == 1;
    };
    const Extents& strides = args_.x.strides;
    return call_.separable() && !args_.has_indices() && all(args_.rows) && all(columns_) &&
           strides[3] == 1 && strides[2] == columns_.in;
  }

  /// Each plane is one run of elements, a vector of partial results. Those of as many planes as a
  /// vector has lanes are joined together: lane k of them is plane k's.
  template <class Op>
  void by_planes() {
    constexpr std::int64_t planes = hn::MaxLanes(d);
    HWY_ALIGN S parts[planes * planes];
    const hn::RebindToSigned<hn::ScalableTag<S>> di;
    const auto rows = hn::Mul(hn::Iota(di, 0), hn::Set(di, static_cast<I>(planes)));
    const std::int64_t size = args_.rows.in * columns_.in;
    for (std::int64_t unit = share_.begin; unit < share_.end;) {
      const std::int64_t n = unit / args_.channels();
      const std::int64_t c = unit % args_.channels();
      const std::int64_t count = std::min({planes, args_.channels() - c, share_.end - unit});
      const T* from =
          static_cast<const T*>(args_.x.data) + n * args_.x.strides[0] + c * args_.x.strides[1];
      for (std::int64_t k = 0; k < count; ++k, from += args_.x.strides[1]) {
        hn::Store(joined_run<Op>(from, size), d, parts + k * planes);
      }
      V joined = hn::GatherIndex(d, parts, rows);
      for (std::int64_t j = 1; j < planes; ++j) {
        joined = Op::join(d, joined, hn::GatherIndex(d, parts + j, rows));
      }
      if (args_.kind() == Pooling::average) {
        joined = hn::Mul(joined, hn::Set(d, S{1} / static_cast<S>(size)));
      }
      if (args_.kind() == Pooling::l2) joined = hn::Sqrt(joined);
      hn::StoreU(joined, d, results_);
      S biases[planes] = {};
      if (args_.options.bias.data != nullptr) {
        for (std::int64_t k = 0; k < count; ++k) biases[k] = *ChannelBias<T>(args_, c + k).get();
      }
      finish(call_, results_, count, args_.options.bias.data != nullptr ? biases : nullptr, false,
             static_cast<T*>(args_.y.data) + n * args_.y.strides[0] + c * args_.y.strides[1],
             args_.y.strides[1]);
      unit += count;
    }
  }

  /// All elements of a run, in the lanes of one vector.
  template <class Op>
  HWY_INLINE V joined_run(const T* from, std::int64_t size) {
    const std::int64_t n = lanes();
    const auto none = hn::Set(d, Op::identity);
    V joined[2] = {none, none};
    std::int64_t i = 0;
    for (; i + 2 * n <= size; i += 2 * n) {
      joined[0] = Op::take(d, joined[0], load_as(d, from + i));
      joined[1] = Op::take(d, joined[1], load_as(d, from + i + n));
    }
    for (; i < size; i += n) {
      const auto some = static_cast<std::size_t>(std::min(n, size - i));
      const V loaded = hn::IfThenElse(hn::FirstN(d, some), load_as_n(d, from + i, some), none);
      joined[0] = Op::take(d, joined[0], loaded);
    }
    return Op::join(d, joined[0], joined[1]);
  }

  /// An output row, a block of windows at a time.
  template <class Op>
  void output_row(std::int64_t n, std::int64_t c, std::int64_t oh) {
    for (std::int64_t first = 0; first < columns_.out; first += call_.windows) {
      output_block<Op>(n, c, oh, first, std::min(call_.windows, columns_.out - first));
    }
  }

  /// Windows [first, first + count) of an output row.
  template <class Op>
  void output_block(std::int64_t n, std::int64_t c, std::int64_t oh, std::int64_t first,
                    std::int64_t count) {
    const ConstTensorRef& x = args_.x;
    outputs_ = count;
    // The columns that a line holds begin at `start`, those of the image at `begin`.
    const std::int64_t start = columns_.start(first);
    const std::int64_t end = start + (count - 1) * columns_.stride + call_.span();
    const std::int64_t begin = std::max<std::int64_t>(start, 0);
    const std::int64_t width = std::min(end, columns_.in) - begin;
    const PoolTaps taps = args_.rows.taps(oh);
    if (by_blocks_) {
      for (std::int64_t i = 0; i < call_.lines(); ++i) {
        S* const line = lines_ + i * line_;
        std::fill(line, line + (begin - start), Op::identity);
        std::fill(line + (begin - start) + width, line + (end - start), Op::identity);
      }
    }
    const T* from = static_cast<const T*>(x.data) + n * x.strides[0] + c * x.strides[1] +
                    args_.rows.start(oh) * x.strides[2] + begin * x.strides[3];
    const std::int64_t step = args_.rows.dilation * x.strides[2];
    S* const to = lines_ + (begin - start);
    if (call_.separable()) {
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
    if (args_.has_indices()) write_indices(n, c, oh, taps.begin, first);
    const Pooling kind = args_.kind();
    const bool divided = kind == Pooling::average || kind == Pooling::weighted;
    const S* divisors = divided ? divisors_.of_block(oh, first, count) : nullptr;
    for (std::int64_t i = 0; (divided || kind == Pooling::l2) && i < count; i += lanes()) {
      const V v = hn::LoadU(d, results_ + i);
      hn::StoreU(kind == Pooling::average    ? hn::Mul(v, hn::LoadU(d, divisors + i))
                 : kind == Pooling::weighted ? hn::Div(v, hn::LoadU(d, divisors + i))
                                             : hn::Sqrt(v),
                 d, results_ + i);
    }
    const TensorRef& y = args_.y;
    finish(call_, results_, count, ChannelBias<T>(args_, c).get(), true,
           static_cast<T*>(y.data) + n * y.strides[0] + c * y.strides[1] + oh * y.strides[2] +
               first * y.strides[3],
           y.strides[3]);
  }

  /// Short rows: their lines are one behind the other, and windows are taken along all of them.
  template <class Op>
  void output_rows(std::int64_t n, std::int64_t c, std::int64_t oh, std::int64_t rows) {
    const ConstTensorRef& x = args_.x;
    const TensorRef& y = args_.y;
    const T* const image = static_cast<const T*>(x.data) + n * x.strides[0] + c * x.strides[1];
    const std::int64_t step = args_.rows.dilation * x.strides[2];
    const std::int64_t pitch = call_.pitch();
    const std::int64_t width = std::min(columns_.in, call_.used() - columns_.padding);
    for (std::int64_t r = 0; r < rows; ++r) {
      const PoolTaps taps = args_.rows.taps(oh + r);
      const T* from = image + args_.rows.start(oh + r) * x.strides[2] + taps.begin * step;
      join_rows<Op>(from, step, taps.count(), width, lines_ + r * pitch + columns_.padding);
    }
    const std::int64_t apart = pitch / columns_.stride;
    outputs_ = (rows - 1) * apart + columns_.out;
    by_stride([&](auto stride) HWY_ATTR { along_line<Op, stride>(); });
    // Between the results of two rows are those of windows that go across: they are closed up.
    S* const closed = results_ + call_.results();  // no positions are kept here
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
    const ChannelBias<T> bias(args_, c);
    T* const to = static_cast<T*>(y.data) + n * y.strides[0] + c * y.strides[1] + oh * y.strides[2];
    const bool one_run = y.strides[2] == out * y.strides[3];
    const std::int64_t run = one_run ? rows * out : out;
    // The last one first: a vector that is not full changes what is behind it.
    for (std::int64_t r = one_run ? 0 : rows - 1; r >= 0; --r) {
      finish(call_, closed + r * out, run, bias.get(), true, to + r * y.strides[2], y.strides[3]);
    }
  }

  /// `count` rows of x, `step` apart, into `width` elements of a line.
  template <class Op>
  HWY_INLINE void join_rows(const T* from, std::int64_t step, std::int64_t count,
                            std::int64_t width, S* line) {
    const std::int64_t element = args_.x.strides[3];
    if (element != 1) {
      for (std::int64_t w = 0; w < width; ++w) {
        S joined = Op::identity;
        for (std::int64_t i = 0; i < count; ++i) {
          joined = Op::take(joined, static_cast<S>(from[i * step + w * element]));
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
        for (int k = 0; k < 4; ++k) joined[k] = Op::take(d, joined[k], load_as(d, row + k * n));
      }
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) hn::StoreU(joined[k], d, line + w + k * n);
    }
    for (; w + n <= width; w += n) {
      V joined = none;
      for (std::int64_t i = 0; i < count; ++i) {
        joined = Op::take(d, joined, load_as(d, from + i * step + w));
      }
      hn::StoreU(joined, d, line + w);
    }
    if (w == width) return;
    // Of the last vector, what is beyond the row stays as it is: the padding.
    const auto rest = static_cast<std::size_t>(width - w);
    V joined = none;
    for (std::int64_t i = 0; i < count; ++i) {
      joined = Op::take(d, joined, load_as_n(d, from + i * step + w, rest));
    }
    store_as_n(joined, d, line + w, rest);
  }

  /// f(stride), a constant where there are instructions for it; 0: any.
  template <class F>
  HWY_INLINE void by_stride(F&& f) {
    if (columns_.stride == 1) return f(std::integral_constant<int, 1>{});
    if (columns_.stride == 2) return f(std::integral_constant<int, 2>{});
    f(std::integral_constant<int, 0>{});
  }

  /// f(j, elements) for the taps of the windows from ow on, which begin at line[ow * stride].
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
      if (dilation == 1) {  // two taps of each pair of vectors
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
                           [&](std::int64_t, V v) HWY_ATTR { joined = Op::join(d, joined, v); });
      hn::StoreU(joined, d, results_ + ow);
    }
  }

  template <int stride>
  HWY_INLINE void weighted(PoolTaps taps) {
    const auto* weights = static_cast<const S*>(call_.weights);
    for (std::int64_t ow = 0; ow < outputs_; ow += lanes()) {
      V sum = hn::Zero(d);
      for (std::int64_t i = taps.begin; i < taps.end; ++i) {
        const S* of_row = weights + i * columns_.kernel;
        for_each_tap<stride>(lines_ + i * line_, ow, [&](std::int64_t j, V v) HWY_ATTR {
          sum = hn::MulAdd(hn::Set(d, of_row[j]), v, sum);
        });
      }
      hn::StoreU(sum, d, results_ + ow);
    }
  }

  /// Maxima, and where they are: i W + j dw from the first tap of the window's first row. -1: no
  /// tap was greater than -infinity.
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

  void write_indices(std::int64_t n, std::int64_t c, std::int64_t oh, std::int64_t first_tap,
                     std::int64_t first) {
    const std::int64_t row = (args_.rows.start(oh) + first_tap * args_.rows.dilation) * columns_.in;
    for (std::int64_t i = 0; i < outputs_; ++i) {
      const std::int64_t ow = first + i;
      const std::int64_t from =
          positions_[i] >= 0 ? positions_[i] : columns_.taps(ow).begin * columns_.dilation;
      positions_[i] = static_cast<I>(row + columns_.start(ow) + from);
    }
    const Extents& strides = args_.options.indices.strides;
    write_positions(args_.options.indices,
                    n * strides[0] + c * strides[1] + oh * strides[2] + first * strides[3],
                    positions_, outputs_, strides[3]);
  }

  const Share& share_;
  const Call& call_;
  const Pool::Args& args_;
  const PoolAxis& columns_;
  std::int64_t line_;
  std::int64_t outputs_;    // windows along a line
  bool by_blocks_ = false;  // of windows: the padding at a line's ends changes
  S* lines_;
  S* results_;
  I* positions_;
  Divisors<T> divisors_;
};

}  // namespace
}  // namespace rung::pool_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
