// SPDX-License-Identifier: Apache-2.0
// pool / contiguous channels
//
// Idea     Vectors of contiguous channels: all lanes of a pixel have the same taps, so no element
//          is shuffled and no edge splits a vector.
// Changes  Against separable: no line, as lanes never share a column. Windows of three columns with
//          a stride of 1 slide: a column's rows are combined once, for the three windows that
//          contain it.
// Cost     kh kw loads per vector of outputs, kh if windows slide; x from memory once.
// Limits   At least 8 contiguous channels, at most 2^17 weights; one thread.
#include "rung/cpu/foreach_target.hpp"

#include <algorithm>
#include <type_traits>

#include "rung/core/integer.hpp"
#include "rung/ops/pool/cpu/detail/results-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::pool_cpu::HWY_NAMESPACE {
namespace {

/// Returns the elements of each of a thread's lines: results, positions, divisors and biases.
inline std::int64_t line_elements(const Pool::Args& args) {
  return round_up(std::min(std::max(args.columns.out, args.channels()), block_results) + slack,
                  slack);
}

template <class T>
class ChannelRows {
 public:
  using S = Accumulator<T>;
  using I = PositionOf<S>;

  ChannelRows(const Pool::Args& args, const void* weights, std::byte* scratch)
      : args_(args),
        weights_(static_cast<const S*>(weights)),
        keeps_results_(args.has_epilogue() || args.has_indices()),
        results_(reinterpret_cast<S*>(scratch)),
        positions_(reinterpret_cast<I*>(results_ + line_elements(args))),
        biases_(results_ + 3 * line_elements(args)),
        divisors_(divisors_for<T>(args, results_ + 2 * line_elements(args))) {}

  template <class Op>
  void output_row(std::int64_t n, std::int64_t oh) {
    const ConstTensorRef& x = args_.x;
    const TensorRef& y = args_.y;
    const PoolAxis& rows = args_.rows;
    const PoolAxis& columns = args_.columns;
    const bool divides = is_divided(args_);
    Window window;
    window.channels = args_.channels();
    window.rows = rows.taps(oh);
    window.row_step = rows.dilation * x.strides[2];
    window.column_step = columns.dilation * x.strides[3];
    const std::int64_t h = rows.start(oh) + window.rows.begin * rows.dilation;
    const cpu::Range inner = shares_columns() ? inner_windows() : cpu::Range{0, 0};
    for (std::int64_t first = 0; first < columns.out; first += block_results) {
      const std::int64_t last = std::min(first + block_results, columns.out);
      const S* divisors = divides ? divisors_.of_block(oh, first, last - first) : nullptr;
      const cpu::Range slid{std::max(inner.begin, first), std::min(inner.end, last)};
      for (std::int64_t ow = first; ow < last; ++ow) {
        const S divisor = divides ? divisors[ow - first] : S{1};
        if (ow == slid.begin && ow < slid.end) {
          slide<Op>(n, oh, h, window, slid, divisor);
          ow = slid.end - 1;
          continue;
        }
        window.columns = columns.taps(ow);
        const std::int64_t w = columns.start(ow) + window.columns.begin * columns.dilation;
        window.x =
            static_cast<const T*>(x.data) + n * x.strides[0] + h * x.strides[2] + w * x.strides[3];
        window.position = h * columns.in + w;
        window.y =
            static_cast<T*>(y.data) + n * y.strides[0] + oh * y.strides[2] + ow * y.strides[3];
        if (keeps_results_) {
          pixel_by_blocks<Op>(n, oh, ow, window, divisor);
        } else {
          pixel<Op>(window, divisor);
        }
      }
    }
  }

 private:
  static constexpr hn::ScalableTag<S> d{};
  using V = hn::Vec<hn::ScalableTag<S>>;
  static HWY_INLINE std::int64_t lanes() { return static_cast<std::int64_t>(hn::Lanes(d)); }

  /// Taps of one pixel, for a range of its channels, from the first tap within the image.
  struct Window {
    const T* x;
    std::int64_t channels;
    std::int64_t row_step, column_step;  // of x, between taps
    PoolTaps rows, columns;
    std::int64_t position;  // of the first tap in the image
    T* y;
  };

  /// Computes a pixel whose results need an epilogue, block_results channels at a time.
  template <class Op>
  void pixel_by_blocks(std::int64_t n, std::int64_t oh, std::int64_t ow, Window window, S divisor) {
    const TensorRef& indices = args_.options.indices;
    const ConstTensorRef& bias = args_.options.bias;
    for (std::int64_t c = 0; c < args_.channels(); c += block_results) {
      window.channels = std::min(block_results, args_.channels() - c);
      if (args_.has_indices()) {
        positions(window);
        const Extents& to = indices.strides;
        store_positions(indices, n * to[0] + oh * to[2] + ow * to[3] + c * to[1], positions_,
                        window.channels, to[1]);
      } else {
        pixel<Op>(window, divisor);
      }
      if (bias.data != nullptr && c != first_bias_) {
        first_bias_ = c;
        load_strided(static_cast<const T*>(bias.data) + c * bias.strides[0], bias.strides[0],
                     window.channels, biases_);
      }
      finish(args_, c, biases_, results_, window.channels, window.y, 1);
      window.x += window.channels;
      window.y += window.channels;
    }
  }

  /// Returns whether consecutive windows share two of three columns. With a stride of 2 they share
  /// one of three, which gains nothing.
  [[nodiscard]] bool shares_columns() const {
    const PoolAxis& columns = args_.columns;
    return args_.kind() != Pooling::weighted && !keeps_results_ && columns.kernel == 3 &&
           columns.stride == 1 && columns.dilation == 1;
  }
  /// Returns the windows within the image's columns.
  [[nodiscard]] cpu::Range inner_windows() const {
    const PoolAxis& columns = args_.columns;
    const std::int64_t room = columns.in + columns.padding - columns.kernel;
    return {columns.padding, room < 0 ? 0 : std::min(room + 1, columns.out)};
  }

  /// Computes the inner windows of an output row, one group of channel vectors after another. A
  /// column's rows are combined once, for all windows that contain it.
  template <class Op>
  void slide(std::int64_t n, std::int64_t oh, std::int64_t h, Window window, cpu::Range inner,
             S factor) {
    const Extents& from = args_.x.strides;
    const Extents& to = args_.y.strides;
    window.x = static_cast<const T*>(args_.x.data) + n * from[0] + h * from[2] +
               args_.columns.start(inner.begin) * from[3];
    window.y = static_cast<T*>(args_.y.data) + n * to[0] + oh * to[2] + inner.begin * to[3];
    const std::int64_t outputs = inner.end - inner.begin;
    const std::int64_t count = args_.channels();
    const std::int64_t step = lanes();
    const auto load = [&](const T* at) HWY_ATTR { return load_as(d, at); };
    const auto store = [&](V v, T* at) HWY_ATTR { store_as(v, d, at); };
    std::int64_t c = 0;
    for (; c + 2 * step <= count; c += 2 * step) {
      slide_columns<Op, 2>(window, c, outputs, factor, load, store);
    }
    for (; c + step <= count; c += step) {
      slide_columns<Op, 1>(window, c, outputs, factor, load, store);
    }
    const auto rest = static_cast<std::size_t>(count - c);
    if (rest == 0) return;
    slide_columns<Op, 1>(
        window, c, outputs, factor, [&](const T* at) HWY_ATTR { return load_as_n(d, at, rest); },
        [&](V v, T* at) HWY_ATTR { store_as_n(v, d, at, rest); });
  }

  template <class Op, int vectors, class Load, class Store>
  HWY_INLINE void slide_columns(const Window& window, std::int64_t c, std::int64_t outputs,
                                S factor, const Load& load, const Store& store) {
    const std::int64_t step = lanes();
    const std::int64_t rows = window.rows.count();
    const std::int64_t column_step = args_.x.strides[3];
    const std::int64_t y_step = args_.y.strides[3];
    const T* from = window.x + c;
    T* to = window.y + c;
    V columns[3][vectors];
    const auto join_rows = [&](V(&column)[vectors]) HWY_ATTR {
#pragma GCC unroll 2
      for (int k = 0; k < vectors; ++k) column[k] = hn::Set(d, Op::identity);
      const T* row = from;
      for (std::int64_t i = 0; i < rows; ++i, row += window.row_step) {
#pragma GCC unroll 2
        for (int k = 0; k < vectors; ++k) {
          column[k] = Op::accumulate(d, column[k], load(row + k * step));
        }
      }
      from += column_step;
    };
    join_rows(columns[0]);
    join_rows(columns[1]);
    for (std::int64_t ow = 0; ow < outputs; ++ow, to += y_step) {
      join_rows(columns[2]);
#pragma GCC unroll 2
      for (int k = 0; k < vectors; ++k) {
        V joined = Op::combine(d, Op::combine(d, columns[0][k], columns[1][k]), columns[2][k]);
        if constexpr (std::is_same_v<Op, Sum<S>>) joined = hn::Mul(joined, hn::Set(d, factor));
        if constexpr (std::is_same_v<Op, SumOfSquares<S>>) joined = hn::Sqrt(joined);
        store(joined, to + k * step);
      }
#pragma GCC unroll 2
      for (int k = 0; k < vectors; ++k) {
        columns[0][k] = columns[1][k];
        columns[1][k] = columns[2][k];
      }
    }
  }

  template <class Op>
  HWY_INLINE void pixel(const Window& window, S divisor) {
    if (weights_ != nullptr) return pixel<Op, true>(window, divisor);
    pixel<Op, false>(window, divisor);
  }

  template <class Op, bool weighted>
  HWY_INLINE void pixel(const Window& window, S divisor) {
    const std::int64_t count = window.channels;
    const bool to_results = keeps_results_;
    const auto store = [&](V v, std::int64_t c) HWY_ATTR {
      if (to_results) {
        hn::StoreU(v, d, results_ + c);
      } else {
        store_as(v, d, window.y + c);
      }
    };
    const std::int64_t n = lanes();
    std::int64_t c = 0;
    for (; c + 4 * n <= count; c += 4 * n) {
      taps<Op, weighted, 4>(
          window, c, divisor, [&](const T* from) HWY_ATTR { return load_as(d, from); }, store);
    }
    for (; c + n <= count; c += n) {
      taps<Op, weighted, 1>(
          window, c, divisor, [&](const T* from) HWY_ATTR { return load_as(d, from); }, store);
    }
    const auto rest = static_cast<std::size_t>(count - c);
    if (rest == 0) return;
    taps<Op, weighted, 1>(
        window, c, divisor, [&](const T* from) HWY_ATTR { return load_as_n(d, from, rest); },
        [&](V v, std::int64_t at) HWY_ATTR {
          if (to_results) {
            hn::StoreU(v, d, results_ + at);
          } else {
            store_as_n(v, d, window.y + at, rest);
          }
        });
  }

  /// Combines the taps of `vectors` vectors of channels from c on.
  template <class Op, bool weighted, int vectors, class Load, class Store>
  HWY_INLINE void taps(const Window& window, std::int64_t c, S divisor, const Load& load,
                       const Store& store) {
    const std::int64_t n = lanes();
    V joined[vectors];
#pragma GCC unroll 4
    for (int k = 0; k < vectors; ++k) joined[k] = hn::Set(d, Op::identity);
    const T* row = window.x + c;
    for (std::int64_t i = window.rows.begin; i < window.rows.end; ++i, row += window.row_step) {
      const T* from = row;
      for (std::int64_t j = window.columns.begin; j < window.columns.end; ++j) {
#pragma GCC unroll 4
        for (int k = 0; k < vectors; ++k) {
          const V v = load(from + k * n);
          if constexpr (weighted) {
            joined[k] =
                hn::MulAdd(hn::Set(d, weights_[i * args_.columns.kernel + j]), v, joined[k]);
          } else {
            joined[k] = Op::accumulate(d, joined[k], v);
          }
        }
        from += window.column_step;
      }
    }
#pragma GCC unroll 4
    for (int k = 0; k < vectors; ++k) {
      if constexpr (weighted) {
        joined[k] = hn::Div(joined[k], hn::Set(d, divisor));
      } else if constexpr (std::is_same_v<Op, Sum<S>>) {
        joined[k] = hn::Mul(joined[k], hn::Set(d, divisor));
      }
      if constexpr (std::is_same_v<Op, SumOfSquares<S>>) joined[k] = hn::Sqrt(joined[k]);
      store(joined[k], c + k * n);
    }
  }

  void positions(const Window& window) {
    const hn::RebindToSigned<hn::ScalableTag<S>> di;
    const std::int64_t count = window.channels;
    for (std::int64_t c = 0; c < count; c += lanes()) {
      const auto here = static_cast<std::size_t>(std::min(lanes(), count - c));
      V best = hn::Set(d, Maximum<S>::identity);
      // The first tap is the maximum if none is greater than -infinity.
      auto where = hn::Set(di, static_cast<I>(window.position));
      const T* row = window.x + c;
      std::int64_t at_row = window.position;
      for (std::int64_t i = window.rows.begin; i < window.rows.end; ++i) {
        const T* from = row;
        std::int64_t at = at_row;
        for (std::int64_t j = window.columns.begin; j < window.columns.end; ++j) {
          const V v = here == hn::Lanes(d) ? load_as(d, from) : load_as_n(d, from, here);
          const auto wins = hn::Or(hn::Gt(v, best), hn::IsNaN(v));
          best = hn::IfThenElse(wins, v, best);
          where = hn::IfThenElse(hn::RebindMask(di, wins), hn::Set(di, static_cast<I>(at)), where);
          from += window.column_step;
          at += args_.columns.dilation;
        }
        row += window.row_step;
        at_row += args_.rows.dilation * args_.columns.in;
      }
      hn::StoreU(best, d, results_ + c);
      hn::StoreU(where, di, positions_ + c);
    }
  }

  const Pool::Args& args_;
  const S* weights_;
  bool keeps_results_;  // for an epilogue; else results are stored to y
  S* results_;
  I* positions_;
  S* biases_;
  std::int64_t first_bias_ = -1;  // channel of biases_[0]; -1: none
  PoolDivisors<T> divisors_;
};

}  // namespace

void channel_rows(const Pool::Args& args, const void* weights, cpu::Range units,
                  std::byte* scratch) {
  visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() HWY_ATTR {
    ChannelRows<T> rows(args, weights, scratch);
    with_operation<Accumulator<T>>(args.kind(), [&](auto operation) HWY_ATTR {
      for (std::int64_t unit = units.begin; unit < units.end; ++unit) {
        rows.template output_row<decltype(operation)>(unit / args.rows.out, unit % args.rows.out);
      }
    });
  });
}

}  // namespace rung::pool_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace pool_cpu {
HWY_EXPORT(channel_rows);
Kernel contiguous_channels(const Pool::Args& args) {
  return {.make =
              [](const Pool::Args& a, const void* weights, cpu::Range units, std::byte* scratch) {
                HWY_DYNAMIC_DISPATCH(channel_rows)(a, weights, units, scratch);
              },
          .units = args.images() * args.rows.out,
          .scratch_elements = 4 * HWY_NAMESPACE::line_elements(args)};
}
}  // namespace pool_cpu

namespace {
using namespace pool_cpu;

Support supports(const Pool::Args& args, const Context&) {
  if (!has_contiguous_channels(args)) return unsupported("8 contiguous channels and more");
  const bool copies = args.kind() != Pooling::weighted || args.taps() <= max_line_elements;
  return copies ? supported : unsupported("at most 2^17 weights");
}

void run(const Pool::Args& args, Context& context) {
  run_kernel(contiguous_channels(args), args, context, 1);
}

const Rung<Pool> self{{.name = "contiguous_channels",
                       .after = "separable",
                       .teaching = true,
                       .supports = supports,
                       .run = run}};

}  // namespace
}  // namespace rung
#endif
