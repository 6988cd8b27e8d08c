// SPDX-License-Identifier: Apache-2.0
// pool_backward's loops over one row of dx at a time, compiled once for each instruction set: what
// the windows over that row give is added up in a line of the arithmetic type, then written.
#include "rung/cpu/foreach_target.hpp"

#include <algorithm>

#include "rung/cpu/load-inl.hpp"
#include "rung/ops/pool_backward/cpu/detail/call.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::pool_backward_cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// Between lines of S and elements of T that lie `step` apart.
template <class T, class S>
HWY_INLINE void read_line(const T* from, std::int64_t step, std::int64_t count, S* line) {
  const hn::ScalableTag<S> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  if (step == 1) {
    for (; i + lanes <= count; i += lanes) {
      hn::StoreU(cpu::HWY_NAMESPACE::load_as(d, from + i), d, line + i);
    }
  }
  for (; i < count; ++i) line[i] = static_cast<S>(from[i * step]);
}
template <class T, class S>
HWY_INLINE void write_line(const S* line, std::int64_t count, T* to, std::int64_t step) {
  const hn::ScalableTag<S> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  if (step == 1) {
    for (; i + lanes <= count; i += lanes) {
      cpu::HWY_NAMESPACE::store_as(hn::LoadU(d, line + i), d, to + i);
    }
  }
  for (; i < count; ++i) to[i * step] = static_cast<T>(line[i]);
}

template <class T>
class Worker {
 public:
  using S = Accumulator<T>;

  explicit Worker(const Share& share)
      : share_(share),
        call_(*share.call),
        args_(*call_.args),
        columns_(args_.columns),
        dy_(static_cast<S*>(share.scratch)),
        other_(dy_ + call_.line()),
        divisors_(other_ + call_.line()),
        x_(divisors_ + call_.line()),
        sums_(x_ + call_.x_line()) {}

  HWY_ATTR void run() {
    const std::int64_t at_once = call_.rows_at_once();
    for (std::int64_t unit = share_.begin; unit < share_.end;) {
      const std::int64_t h = unit % args_.rows.in;
      const std::int64_t plane = unit / args_.rows.in;
      const std::int64_t n = plane / args_.channels();
      const std::int64_t c = plane % args_.channels();
      std::int64_t rows = 1;
      if (call_.along_channels) {
        for (std::int64_t first = 0; first < args_.channels(); first += block_size) {
          channels_row(plane, h, first, std::min(block_size, args_.channels() - first));
        }
      } else if (args_.kind() == Pooling::max) {
        rows = std::min({at_once, args_.rows.in - h, share_.end - unit});
        if (args_.options.indices.dtype == DType::i32) {
          maxima_rows<std::int32_t>(n, c, h, rows);
        } else {
          maxima_rows<std::int64_t>(n, c, h, rows);
        }
      } else {
        image_row(n, c, h);
      }
      unit += rows;
    }
  }

 private:
  /// Where element (n, c, row, 0) of a tensor lies.
  template <class U>
  static const U* at(const ConstTensorRef& tensor, std::int64_t n, std::int64_t c,
                     std::int64_t row) {
    return static_cast<const U*>(tensor.data) + n * tensor.strides[0] + c * tensor.strides[1] +
           row * tensor.strides[2];
  }

  /// The weight of tap (i, j).
  [[nodiscard]] S weight(std::int64_t i, std::int64_t j) const {
    const ConstTensorRef& weights = args_.options.weights;
    return static_cast<S>(
        static_cast<const T*>(weights.data)[i * weights.strides[0] + j * weights.strides[1]]);
  }

  /// The divisor of a window with these taps.
  [[nodiscard]] S divisor(PoolTaps rows, PoolTaps columns) const {
    if (args_.kind() != Pooling::weighted) return static_cast<S>(rows.count() * columns.count());
    S sum = 0;
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
      for (std::int64_t j = columns.begin; j < columns.end; ++j) sum += weight(i, j);
    }
    return sum;
  }

  /// Windows [first, first + count) of a row of windows.
  struct Windows {
    std::int64_t first, count;
    [[nodiscard]] std::int64_t end() const { return first + count; }
  };
  /// f(windows) for each block of them.
  template <class F>
  HWY_INLINE void for_each_block(const F& f) const {
    for (std::int64_t first = 0; first < columns_.out; first += block_size) {
      f(Windows{first, std::min(block_size, columns_.out - first)});
    }
  }

  /// The divisors of a block of windows, found anew where it, or their rows, differ from those
  /// before.
  HWY_ATTR void find_divisors(std::int64_t oh, Windows windows) {
    const bool padded = args_.options.count_padding;
    const PoolTaps rows = padded ? PoolTaps{0, args_.rows.padded_taps(oh)} : args_.rows.taps(oh);
    const bool same_rows = rows.begin == rows_.begin && rows.end == rows_.end;
    if (same_rows && windows.first == first_) return;
    if (!same_rows) full_known_ = false;
    rows_ = rows;
    first_ = windows.first;
    for (std::int64_t i = 0; i < windows.count; ++i) {
      const std::int64_t ow = windows.first + i;
      if (columns_.has_all_taps(ow, padded)) {  // one for all of these
        if (!full_known_) full_ = divisor(rows, {0, columns_.kernel});
        full_known_ = true;
        divisors_[i] = full_;
      } else {
        divisors_[i] =
            divisor(rows, padded ? PoolTaps{0, columns_.padded_taps(ow)} : columns_.taps(ow));
      }
    }
  }

  // --- rows of one image and channel -------------------------------------------------------------

  HWY_ATTR void image_row(std::int64_t n, std::int64_t c, std::int64_t h) {
    std::fill(sums_, sums_ + columns_.in, S{0});
    const PoolBackwardOptions& options = args_.options;
    const bool l2 = args_.kind() == Pooling::l2;
    if (l2) read_line(at<T>(options.x, n, c, h), options.x.strides[3], columns_.in, x_);
    const PoolTaps over = args_.rows.windows_over(h);
    for_each_block([&](Windows windows) HWY_ATTR {
      bool any = false;
      for (std::int64_t oh = over.begin; oh < over.end; ++oh) {
        const std::int64_t i = args_.rows.tap_at(oh, h);
        if (i < 0) continue;
        read_windows<T>(args_.dy, n, c, oh, windows, dy_);
        switch (args_.kind()) {
          case Pooling::average:
            // All rows of windows first: what they give goes to the same columns.
            add_quotients(oh, windows, any);
            any = true;
            break;
          case Pooling::l2:
            read_windows<T>(options.y, n, c, oh, windows, other_);
            add_norms(windows);
            break;
          default:
            find_divisors(oh, windows);
            for (std::int64_t k = 0; k < windows.count; ++k) dy_[k] /= divisors_[k];
            add_products(dy_, i, windows);
        }
      }
      if (any) add_products(other_, -1, windows);
    });
    const TensorRef& dx = args_.dx;
    write_line(sums_, columns_.in,
               static_cast<T*>(dx.data) + n * dx.strides[0] + c * dx.strides[1] + h * dx.strides[2],
               dx.strides[3]);
  }

  /// A block of a row of dy or y.
  template <class U>
  static HWY_INLINE void read_windows(const ConstTensorRef& tensor, std::int64_t n, std::int64_t c,
                                      std::int64_t oh, Windows windows, S* to) {
    const std::int64_t step = tensor.strides[3];
    read_line(at<U>(tensor, n, c, oh) + windows.first * step, step, windows.count, to);
  }

  HWY_ATTR void add_quotients(std::int64_t oh, Windows windows, bool any) {
    find_divisors(oh, windows);
    for (std::int64_t k = 0; k < windows.count; ++k) {
      const S quotient = dy_[k] / divisors_[k];
      other_[k] = any ? other_[k] + quotient : quotient;
    }
  }

  /// f of a window to each of its columns, times the weight of the tap in the window's row
  /// `weights_row`, if that is not negative; tap by tap, so that neighboring windows follow each
  /// other.
  HWY_ATTR void add_products(const S* HWY_RESTRICT of_window, std::int64_t weights_row,
                             Windows windows) {
    for (std::int64_t j = 0; j < columns_.kernel; ++j) {
      const S factor = weights_row >= 0 ? weight(weights_row, j) : S{1};
      const std::int64_t shift = j * columns_.dilation - columns_.padding;
      // Windows whose tap j is within the row.
      const std::int64_t low = shift >= 0 ? 0 : ceil_div(-shift, columns_.stride);
      const std::int64_t room = columns_.in - shift;
      const std::int64_t high = room <= 0 ? 0 : ceil_div(room, columns_.stride);
      const std::int64_t first = std::max(low, windows.first);
      const std::int64_t count = std::min(high, windows.end()) - first;
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

  /// Rows [h, h + rows) of dx, from all windows over them, each looked at once.
  template <class Index>
  HWY_ATTR void maxima_rows(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t rows) {
    const PoolAxis& axis = args_.rows;
    const std::int64_t width = columns_.in;
    std::fill(sums_, sums_ + rows * width, S{0});
    const std::int64_t first = axis.windows_over(h).begin;
    const std::int64_t last = axis.windows_over(h + rows - 1).end;
    const std::int64_t step = args_.options.indices.strides[3];
    for (std::int64_t oh = first; oh < last; ++oh) {
      const Index* indices = at<Index>(args_.options.indices, n, c, oh);
      for_each_block([&](Windows windows) HWY_ATTR {
        read_windows<T>(args_.dy, n, c, oh, windows, dy_);
        for (std::int64_t k = 0; k < windows.count; ++k) {
          const std::int64_t ow = windows.first + k;
          const std::int64_t place = static_cast<std::int64_t>(indices[ow * step]) - h * width;
          if (place < 0 || place >= rows * width) continue;
          const auto narrow = static_cast<std::uint32_t>(place);  // images: below 2^31 elements
          const std::int64_t row = narrow / static_cast<std::uint32_t>(width);
          if (axis.tap_at(oh, h + row) < 0 || columns_.tap_at(ow, place - row * width) < 0) {
            continue;
          }
          sums_[place] += dy_[k];
        }
      });
    }
    const TensorRef& dx = args_.dx;
    T* to = static_cast<T*>(dx.data) + n * dx.strides[0] + c * dx.strides[1] + h * dx.strides[2];
    for (std::int64_t row = 0; row < rows; ++row) {
      write_line(sums_ + row * width, width, to + row * dx.strides[2], dx.strides[3]);
    }
  }

  HWY_ATTR void add_norms(Windows windows) {
    for (std::int64_t k = 0; k < windows.count; ++k) {
      if (other_[k] == 0) continue;
      const std::int64_t ow = windows.first + k;
      const PoolTaps taps = columns_.taps(ow);
      const std::int64_t start = columns_.start(ow);
      for (std::int64_t j = taps.begin; j < taps.end; ++j) {
        const std::int64_t w = start + j * columns_.dilation;
        sums_[w] += dy_[k] * (x_[w] / other_[k]);  // |x / y| <= 1: nothing overflows on the way
      }
    }
  }

  // --- rows of some channels ---------------------------------------------------------------------

  HWY_ATTR void channels_row(std::int64_t n, std::int64_t h, std::int64_t channel,
                             std::int64_t count) {
    const PoolBackwardOptions& options = args_.options;
    const bool divides = args_.kind() == Pooling::average || args_.kind() == Pooling::weighted;
    Windows windows{0, 0};
    std::fill(sums_, sums_ + columns_.in * count, S{0});
    const PoolTaps over = args_.rows.windows_over(h);
    for (std::int64_t oh = over.begin; oh < over.end; ++oh) {
      const std::int64_t i = args_.rows.tap_at(oh, h);
      if (i < 0) continue;
      for (std::int64_t ow = 0; ow < columns_.out; ++ow) {
        if (divides && ow % block_size == 0) {
          windows = {ow, std::min(block_size, columns_.out - ow)};
          find_divisors(oh, windows);
        }
        read_line(at<T>(args_.dy, n, channel, oh) + ow * args_.dy.strides[3], 1, count, dy_);
        if (args_.kind() == Pooling::l2) {
          read_line(at<T>(options.y, n, channel, oh) + ow * options.y.strides[3], 1, count, other_);
        } else if (args_.kind() != Pooling::max) {
          for (std::int64_t c = 0; c < count; ++c) dy_[c] /= divisors_[ow - windows.first];
        }
        const PoolTaps taps = columns_.taps(ow);
        for (std::int64_t j = taps.begin; j < taps.end; ++j) {
          const std::int64_t w = columns_.start(ow) + j * columns_.dilation;
          S* HWY_RESTRICT sums = sums_ + w * count;
          switch (args_.kind()) {
            case Pooling::max: {
              const std::int64_t place = n * options.indices.strides[0] +
                                         oh * options.indices.strides[2] +
                                         ow * options.indices.strides[3] + channel;
              add_where(place, h * columns_.in + w, count, sums);
              break;
            }
            case Pooling::l2:
              read_line(at<T>(options.x, n, channel, h) + w * options.x.strides[3], 1, count, x_);
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
      write_line(sums_ + w * count, count, to + w * dx.strides[3], 1);
    }
  }

  /// dy of the channels whose index is `wanted`.
  HWY_ATTR void add_where(std::int64_t place, std::int64_t wanted, std::int64_t count,
                          S* HWY_RESTRICT sums) {
    const ConstTensorRef& indices = args_.options.indices;
    if (indices.dtype == DType::i32) {
      const auto* from = static_cast<const std::int32_t*>(indices.data) + place;
      const auto narrow = static_cast<std::int32_t>(wanted);
      for (std::int64_t c = 0; c < count; ++c) sums[c] += from[c] == narrow ? dy_[c] : S{0};
    } else {
      const auto* from = static_cast<const std::int64_t*>(indices.data) + place;
      for (std::int64_t c = 0; c < count; ++c) sums[c] += from[c] == wanted ? dy_[c] : S{0};
    }
  }

  const Share& share_;
  const Call& call_;
  const PoolBackward::Args& args_;
  const PoolAxis& columns_;
  S* dy_;
  S* other_;  // quotients, or y
  S* divisors_;
  S* x_;
  S* sums_;                // of a row of dx, or of several
  PoolTaps rows_{-1, -1};  // of divisors_
  std::int64_t first_ = -1;
  S full_ = 0;  // the divisor of windows with all taps
  bool full_known_ = false;
};

}  // namespace

void work_on(const Share& share) {
  if (share.begin == share.end) return;
  visit<float, double, f16, bf16>(share.call->args->dx.dtype,
                                  [&]<class T>() HWY_ATTR { Worker<T>(share).run(); });
}

}  // namespace rung::pool_backward_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::pool_backward_cpu {
HWY_EXPORT(work_on);
void work(const Share& share) { HWY_DYNAMIC_DISPATCH(work_on)(share); }
}  // namespace rung::pool_backward_cpu
#endif
