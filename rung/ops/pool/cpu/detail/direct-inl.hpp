// SPDX-License-Identifier: Apache-2.0
//
// Windows whose taps are read one by one, each where it lies: for calls whose lines or weights
// would not fit a scratch of constant size. kh kw operations per result, in row-major order, on the
// taps within the image; padding costs nothing.
#if defined(RUNG_OPS_POOL_CPU_DIRECT_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_POOL_CPU_DIRECT_INL_HPP_
#undef RUNG_OPS_POOL_CPU_DIRECT_INL_HPP_
#else
#define RUNG_OPS_POOL_CPU_DIRECT_INL_HPP_
#endif

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "rung/ops/pool/cpu/detail/operations-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::pool_cpu::HWY_NAMESPACE {
namespace {

template <class T>
class DirectWorker {
 public:
  using S = Accumulator<T>;
  using I = std::conditional_t<sizeof(S) == 8, std::int64_t, std::int32_t>;

  explicit DirectWorker(const Share& share)
      : share_(share),
        call_(*share.call),
        args_(*call_.args),
        results_(static_cast<S*>(share.scratch)),
        positions_(reinterpret_cast<I*>(results_ + call_.results())),
        divisors_(call_, results_ + 2 * call_.results()) {}

  void run() {
    const std::int64_t channels = call_.along == Along::channels ? 1 : args_.channels();
    for (std::int64_t unit = share_.begin; unit < share_.end; ++unit) {
      const std::int64_t plane = unit / args_.rows.out;
      const std::int64_t oh = unit % args_.rows.out;
      for (std::int64_t first = 0; first < args_.columns.out; first += call_.windows) {
        const std::int64_t count = std::min(call_.windows, args_.columns.out - first);
        const S* divisors = divides() ? divisors_.of_block(oh, first, count) : nullptr;
        if (call_.along == Along::rows) {
          block(plane / channels, plane % channels, oh, first, count, divisors);
        } else {
          for (std::int64_t c = 0; c < args_.channels(); ++c) {
            block(plane, c, oh, first, count, divisors);
          }
        }
      }
    }
  }

 private:
  [[nodiscard]] bool divides() const {
    return args_.kind() == Pooling::average || args_.kind() == Pooling::weighted;
  }

  /// Windows [first, first + count) of an output row of a channel.
  void block(std::int64_t n, std::int64_t c, std::int64_t oh, std::int64_t first,
             std::int64_t count, const S* divisors) {
    for (std::int64_t i = 0; i < count; ++i) window(n, c, oh, first + i, divisors, i);
    const TensorRef& y = args_.y;
    if (args_.has_indices()) {
      const Extents& to = args_.options.indices.strides;
      write_positions(args_.options.indices, n * to[0] + c * to[1] + oh * to[2] + first * to[3],
                      positions_, count, to[3]);
    }
    finish(call_, results_, count, ChannelBias<T>(args_, c).get(), true,
           static_cast<T*>(y.data) + n * y.strides[0] + c * y.strides[1] + oh * y.strides[2] +
               first * y.strides[3],
           y.strides[3]);
  }

  /// Result and position of window ow into element i.
  void window(std::int64_t n, std::int64_t c, std::int64_t oh, std::int64_t ow, const S* divisors,
              std::int64_t i) {
    const ConstTensorRef& x = args_.x;
    const PoolTaps rows = args_.rows.taps(oh);
    const PoolTaps columns = args_.columns.taps(ow);
    const T* const from = static_cast<const T*>(x.data) + n * x.strides[0] + c * x.strides[1];
    const std::int64_t row_step = args_.rows.dilation;
    const std::int64_t column_step = args_.columns.dilation;
    // f(v, tap i, tap j, position in the image)
    const auto for_each_tap = [&](const auto& f) HWY_ATTR {
      for (std::int64_t r = rows.begin; r < rows.end; ++r) {
        const std::int64_t h = args_.rows.start(oh) + r * row_step;
        std::int64_t w = args_.columns.start(ow) + columns.begin * column_step;
        const T* const row = from + h * x.strides[2];
        for (std::int64_t j = columns.begin; j < columns.end; ++j, w += column_step) {
          f(static_cast<S>(row[w * x.strides[3]]), r, j, h * args_.columns.in + w);
        }
      }
    };
    S result = 0;
    switch (args_.kind()) {
      case Pooling::max: {
        result = Maximum<S>::identity;
        std::int64_t where = (args_.rows.start(oh) + rows.begin * row_step) * args_.columns.in +
                             args_.columns.start(ow) + columns.begin * column_step;
        for_each_tap([&](S v, std::int64_t, std::int64_t, std::int64_t at) HWY_ATTR {
          if (!(v > result) && !std::isnan(v)) return;
          result = v;
          where = at;
        });
        positions_[i] = static_cast<I>(where);
        break;
      }
      case Pooling::average:
        for_each_tap([&](S v, std::int64_t, std::int64_t, std::int64_t) HWY_ATTR { result += v; });
        result *= divisors[i];
        break;
      case Pooling::l2:
        for_each_tap([&](S v, std::int64_t, std::int64_t, std::int64_t)
                         HWY_ATTR { result += v * v; });
        result = std::sqrt(result);
        break;
      case Pooling::weighted:
        for_each_tap([&](S v, std::int64_t r, std::int64_t j, std::int64_t)
                         HWY_ATTR { result += weight<T>(call_, r, j) * v; });
        result /= divisors[i];
        break;
    }
    results_[i] = result;
  }

  const Share& share_;
  const Call& call_;
  const Pool::Args& args_;
  S* results_;
  I* positions_;
  Divisors<T> divisors_;
};

}  // namespace
}  // namespace rung::pool_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
