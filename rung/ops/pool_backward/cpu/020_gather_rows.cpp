// SPDX-License-Identifier: Apache-2.0
// pool_backward / gather rows
//
// Idea     Gather: for each row of dx, the contributions of all windows over it are accumulated in
//          a line in L1, in the arithmetic type, and the row is stored once.
// Changes  Against naive: dx is neither zeroed nor loaded, and rows are independent. An average's
//          quotients are first summed over the rows of windows, then added to their columns.
//          Contiguous channels are vectorized.
// Cost     dy is loaded kh / sh times, all but the first from the caches. Slower than naive for
//          maxima of f32: a branch per window, where naive adds unconditionally.
// Limits   None; one thread.
#include "rung/cpu/foreach_target.hpp"

#include <algorithm>

#include "rung/cpu/strided_line-inl.hpp"
#include "rung/ops/pool/shared/cpu/divisors.hpp"
#include "rung/ops/pool_backward/cpu/detail/gather.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::pool_backward_cpu::HWY_NAMESPACE {
namespace {
using cpu::HWY_NAMESPACE::load_strided;
using cpu::HWY_NAMESPACE::store_strided;

template <class T>
class GatheredRows {
 public:
  using S = Accumulator<T>;

  GatheredRows(const PoolBackward::Args& args, const GatherLines& lines, std::byte* scratch)
      : args_(args),
        columns_(args.columns),
        dy_(reinterpret_cast<S*>(scratch)),
        other_(dy_ + lines.windows),
        x_(other_ + 2 * lines.windows),
        sums_(x_ + lines.x),
        divisors_(args, other_ + lines.windows, false) {}

  /// Computes rows [h, h + rows) of dx of one channel from the windows whose maximum is within
  /// them: each window is visited once, not once per row that it spans.
  template <class Index>
  HWY_ATTR void maxima_rows(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t rows) {
    const PoolAxis& axis = args_.rows;
    const std::int64_t width = columns_.in;
    std::fill(sums_, sums_ + rows * width, S{0});
    const std::int64_t step = args_.options.indices.strides[3];
    const std::int64_t end = axis.windows_over(h + rows - 1).end;
    for (std::int64_t oh = axis.windows_over(h).begin; oh < end; ++oh) {
      const Index* indices = at<Index>(args_.options.indices, n, c, oh);
      for (std::int64_t first = 0; first < columns_.out; first += block_size) {
        const std::int64_t count = std::min(block_size, columns_.out - first);
        load_windows(args_.dy, n, c, oh, {first, count}, dy_);
        for (std::int64_t k = 0; k < count; ++k) {
          const std::int64_t ow = first + k;
          const std::int64_t place = static_cast<std::int64_t>(indices[ow * step]) - h * width;
          if (place < 0 || place >= rows * width) continue;
          const auto narrow = static_cast<std::uint32_t>(place);  // of < 2^31 elements
          const std::int64_t row = narrow / static_cast<std::uint32_t>(width);
          // An index outside its own window is ignored.
          if (axis.tap_at(oh, h + row) < 0 || columns_.tap_at(ow, place - row * width) < 0) {
            continue;
          }
          sums_[place] += dy_[k];
        }
      }
    }
    for (std::int64_t row = 0; row < rows; ++row) store_row(sums_ + row * width, n, c, h + row);
  }

  /// Computes a row of dx of one channel, from averages, norms or weighted sums.
  HWY_ATTR void image_row(std::int64_t n, std::int64_t c, std::int64_t h) {
    const PoolBackwardOptions& options = args_.options;
    std::fill(sums_, sums_ + columns_.in, S{0});
    if (args_.kind() == Pooling::l2) {
      load_strided(at<T>(options.x, n, c, h), options.x.strides[3], columns_.in, x_);
    }
    const PoolTaps over = args_.rows.windows_over(h);
    for (std::int64_t first = 0; first < columns_.out; first += block_size) {
      const Windows windows{first, std::min(block_size, columns_.out - first)};
      bool has_quotients = false;
      for (std::int64_t oh = over.begin; oh < over.end; ++oh) {
        const std::int64_t i = args_.rows.tap_at(oh, h);
        if (i < 0) continue;
        load_windows(args_.dy, n, c, oh, windows, dy_);
        if (args_.kind() == Pooling::l2) {
          load_windows(options.y, n, c, oh, windows, other_);
          add_norms(windows);
          continue;
        }
        const S* const divisors = divisors_.of_block(oh, first, windows.count);
        if (args_.kind() == Pooling::weighted) {
          for (std::int64_t k = 0; k < windows.count; ++k) dy_[k] /= divisors[k];
          add_products(dy_, i, windows);
          continue;
        }
        // The quotients of all rows of windows have the same columns: their sum is added once.
        add_quotients(divisors, windows.count, has_quotients);
        has_quotients = true;
      }
      if (has_quotients) add_products(other_, -1, windows);
    }
    store_row(sums_, n, c, h);
  }

  /// Computes a row of dx for channels [channel, channel + count); inner loops run along channels.
  HWY_ATTR void channels_row(std::int64_t n, std::int64_t h, std::int64_t channel,
                             std::int64_t count) {
    const PoolBackwardOptions& options = args_.options;
    const bool divides = args_.kind() == Pooling::average || args_.kind() == Pooling::weighted;
    const S* divisors = nullptr;  // of a block of windows
    std::fill(sums_, sums_ + columns_.in * count, S{0});
    const PoolTaps over = args_.rows.windows_over(h);
    for (std::int64_t oh = over.begin; oh < over.end; ++oh) {
      const std::int64_t i = args_.rows.tap_at(oh, h);
      if (i < 0) continue;
      for (std::int64_t ow = 0; ow < columns_.out; ++ow) {
        load_strided(at<T>(args_.dy, n, channel, oh) + ow * args_.dy.strides[3], 1, count, dy_);
        if (args_.kind() == Pooling::l2) {
          load_strided(at<T>(options.y, n, channel, oh) + ow * options.y.strides[3], 1, count,
                       other_);
        } else if (divides) {
          if (ow % block_size == 0) {
            divisors = divisors_.of_block(oh, ow, std::min(block_size, columns_.out - ow));
          }
          const S divisor = divisors[ow % block_size];
          for (std::int64_t c = 0; c < count; ++c) dy_[c] /= divisor;
        }
        const PoolTaps taps = columns_.taps(ow);
        for (std::int64_t j = taps.begin; j < taps.end; ++j) {
          const std::int64_t w = columns_.start(ow) + j * columns_.dilation;
          S* HWY_RESTRICT sums = sums_ + w * count;
          switch (args_.kind()) {
            case Pooling::max: {
              const Extents& steps = options.indices.strides;
              const std::int64_t first = n * steps[0] + channel + oh * steps[2] + ow * steps[3];
              add_where(first, h * columns_.in + w, count, sums);
              break;
            }
            case Pooling::l2:
              load_strided(at<T>(options.x, n, channel, h) + w * options.x.strides[3], 1, count,
                           x_);
              for (std::int64_t c = 0; c < count; ++c) {
                sums[c] += other_[c] == 0 ? S{0} : dy_[c] * (x_[c] / other_[c]);
              }
              break;
            case Pooling::average:
              for (std::int64_t c = 0; c < count; ++c) sums[c] += dy_[c];
              break;
            case Pooling::weighted: {
              const S factor = weight(i, j);
              for (std::int64_t c = 0; c < count; ++c) sums[c] += factor * dy_[c];
              break;
            }
          }
        }
      }
    }
    const TensorRef& dx = args_.dx;
    T* to = static_cast<T*>(dx.data) + n * dx.strides[0] + channel + h * dx.strides[2];
    for (std::int64_t w = 0; w < columns_.in; ++w) {
      store_strided(sums_ + w * count, count, to + w * dx.strides[3], 1);
    }
  }

 private:
  /// Range [first, first + count) of windows in a row of windows.
  struct Windows {
    std::int64_t first, count;
  };

  /// Returns the address of element (n, c, row, 0) of a tensor.
  template <class U>
  static const U* at(const ConstTensorRef& tensor, std::int64_t n, std::int64_t c,
                     std::int64_t row) {
    return static_cast<const U*>(tensor.data) + n * tensor.strides[0] + c * tensor.strides[1] +
           row * tensor.strides[2];
  }
  /// Loads a block of a row of dy or y.
  HWY_INLINE void load_windows(const ConstTensorRef& tensor, std::int64_t n, std::int64_t c,
                               std::int64_t oh, Windows windows, S* to) const {
    const std::int64_t step = tensor.strides[3];
    load_strided(at<T>(tensor, n, c, oh) + windows.first * step, step, windows.count, to);
  }
  HWY_INLINE void store_row(const S* sums, std::int64_t n, std::int64_t c, std::int64_t h) const {
    const TensorRef& dx = args_.dx;
    T* to = static_cast<T*>(dx.data) + n * dx.strides[0] + c * dx.strides[1] + h * dx.strides[2];
    store_strided(sums, columns_.in, to, dx.strides[3]);
  }
  [[nodiscard]] S weight(std::int64_t i, std::int64_t j) const {
    const ConstTensorRef& weights = args_.options.weights;
    return static_cast<S>(
        static_cast<const T*>(weights.data)[i * weights.strides[0] + j * weights.strides[1]]);
  }

  /// Divides dy by the windows' divisors, and adds the quotients to those of previous rows if
  /// `any`.
  HWY_ATTR void add_quotients(const S* HWY_RESTRICT divisors, std::int64_t count, bool any) {
    for (std::int64_t k = 0; k < count; ++k) {
      const S quotient = dy_[k] / divisors[k];
      other_[k] = any ? other_[k] + quotient : quotient;
    }
  }

  /// Adds a value per window to each of its columns, times the weights of row `weights_row` unless
  /// that is negative. The outer loop runs over taps: adjacent lanes have adjacent windows.
  HWY_ATTR void add_products(const S* HWY_RESTRICT of_window, std::int64_t weights_row,
                             Windows windows) {
    for (std::int64_t j = 0; j < columns_.kernel; ++j) {
      const S factor = weights_row >= 0 ? weight(weights_row, j) : S{1};
      const std::int64_t shift = j * columns_.dilation - columns_.padding;
      // Windows [low, high) have tap j within the row.
      const std::int64_t low = shift >= 0 ? 0 : ceil_div(-shift, columns_.stride);
      const std::int64_t room = columns_.in - shift;
      const std::int64_t high = room <= 0 ? 0 : ceil_div(room, columns_.stride);
      const std::int64_t first = std::max(low, windows.first);
      const std::int64_t count = std::min(high, windows.first + windows.count) - first;
      if (count <= 0) continue;
      S* HWY_RESTRICT to = sums_ + first * columns_.stride + shift;
      const S* HWY_RESTRICT from = of_window + (first - windows.first);
      if (columns_.stride == 1) {
        for (std::int64_t k = 0; k < count; ++k) to[k] += factor * from[k];
      } else {
        for (std::int64_t k = 0; k < count; ++k) to[k * columns_.stride] += factor * from[k];
      }
    }
  }

  /// Adds the gradients of the windows' norms: dy x / y; 0 if y is 0.
  HWY_ATTR void add_norms(Windows windows) {
    for (std::int64_t k = 0; k < windows.count; ++k) {
      if (other_[k] == 0) continue;
      const PoolTaps taps = columns_.taps(windows.first + k);
      const std::int64_t start = columns_.start(windows.first + k);
      for (std::int64_t j = taps.begin; j < taps.end; ++j) {
        const std::int64_t w = start + j * columns_.dilation;
        sums_[w] += dy_[k] * (x_[w] / other_[k]);  // |x / y| <= 1: the quotient cannot overflow
      }
    }
  }

  /// Adds dy of the channels whose index is `wanted` to `sums`; their indices begin at `first`.
  HWY_ATTR void add_where(std::int64_t first, std::int64_t wanted, std::int64_t count,
                          S* HWY_RESTRICT sums) {
    const ConstTensorRef& indices = args_.options.indices;
    if (indices.dtype == DType::i32) {
      const auto* from = static_cast<const std::int32_t*>(indices.data) + first;
      const auto narrow = static_cast<std::int32_t>(wanted);
      for (std::int64_t c = 0; c < count; ++c) sums[c] += from[c] == narrow ? dy_[c] : S{0};
    } else {
      const auto* from = static_cast<const std::int64_t*>(indices.data) + first;
      for (std::int64_t c = 0; c < count; ++c) sums[c] += from[c] == wanted ? dy_[c] : S{0};
    }
  }

  const PoolBackward::Args& args_;
  const PoolAxis& columns_;
  S* dy_;
  S* other_;  // quotients, or y
  S* x_;
  S* sums_;  // of one or several rows of dx
  PoolDivisors<T> divisors_;
};

}  // namespace

void gather_rows(const PoolBackward::Args& args, cpu::Range units, std::byte* scratch) {
  const GatherLines lines(args);
  visit<float, double, f16, bf16>(args.dx.dtype, [&]<class T>() HWY_ATTR {
    GatheredRows<T> gathered(args, lines, scratch);
    for (std::int64_t unit = units.begin; unit < units.end;) {
      const std::int64_t h = unit % args.rows.in;
      const std::int64_t plane = unit / args.rows.in;
      const std::int64_t rows = std::min({lines.rows_at_once, args.rows.in - h, units.end - unit});
      unit += rows;
      if (lines.along_channels) {
        for (std::int64_t first = 0; first < args.channels(); first += block_size) {
          gathered.channels_row(plane, h, first, std::min(block_size, args.channels() - first));
        }
        continue;
      }
      const std::int64_t n = plane / args.channels();
      const std::int64_t c = plane % args.channels();
      if (args.kind() != Pooling::max) {
        gathered.image_row(n, c, h);
      } else if (args.options.indices.dtype == DType::i32) {
        gathered.template maxima_rows<std::int32_t>(n, c, h, rows);
      } else {
        gathered.template maxima_rows<std::int64_t>(n, c, h, rows);
      }
    }
  });
}

}  // namespace rung::pool_backward_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace pool_backward_cpu {
HWY_EXPORT(gather_rows);
void gather_rows(const PoolBackward::Args& args, cpu::Range units, std::byte* scratch) {
  HWY_DYNAMIC_DISPATCH(gather_rows)(args, units, scratch);
}

int threads_of(const PoolBackward::Args& args, const Context& context) {
  constexpr double min_terms = 1 << 15;  // a second thread costs some 5 us
  if (PoolBackward::cost(args).operations / 2 < min_terms) return 1;
  return static_cast<int>(std::min<std::int64_t>(context.threads(), GatherLines(args).units));
}

/// Returns the work of a call for the time model: rows of windows read per group of rows of dx, and
/// taps added.
Work facts(const PoolBackward::Args& args, int threads) {
  const GatherLines lines(args);
  const auto stride = static_cast<double>(args.rows.stride),
             in = static_cast<double>(args.columns.in);
  const double over = static_cast<double>(args.rows.kernel) / stride;
  const auto width = static_cast<double>(args.columns.out);
  const double added = over * width * static_cast<double>(args.columns.kernel);
  if (lines.along_channels) {
    const std::int64_t vectors = ceil_div(args.channels(), std::int64_t{16});
    return {.blocks = lines.units * args.columns.in,
            .steps = added / in * static_cast<double>(vectors),
            .threads = threads};
  }
  const auto rows = static_cast<double>(lines.rows_at_once);
  const bool is_max = args.kind() == Pooling::max;
  return {.blocks = lines.units,
          .steps = in + (is_max ? width * (over + (rows - 1) / stride) / rows : added),
          .threads = threads,
          .path = is_max                            ? "max"
                  : args.kind() == Pooling::average ? "average"
                                                    : ""};
}
}  // namespace pool_backward_cpu

namespace {
using namespace pool_backward_cpu;

Work work(const PoolBackward::Args& args, const Context&) { return facts(args, 1); }

void run(const PoolBackward::Args& args, Context& context) {
  const GatherLines lines(args);
  auto* const scratch = static_cast<std::byte*>(context.workspace(lines.bytes(args.dx.dtype)));
  gather_rows(args, {0, lines.units}, scratch);
}

const Rung<PoolBackward> self{
    {.name = "gather_rows", .step = 20, .after = "naive", .work = work, .run = run}};

}  // namespace
}  // namespace rung
#endif
