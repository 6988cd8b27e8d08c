// SPDX-License-Identifier: Apache-2.0
// pool / clipped
//
// Idea     Each window is clipped to the image once: its first and last tap within the image follow
//          from its position, along each axis. The loops over taps have no bounds check.
// Changes  Against naive: two comparisons per axis of a window instead of four per tap, and
//          elements are read along the contiguous axis. Supports every type, kind and epilogue.
// Cost     kh kw loads and operations per output; the operations form one dependency chain.
// Limits   None; one thread. Later rungs fall back to it for windows and weights that exceed their
//          scratch memory.
#include "rung/cpu/foreach_target.hpp"

#include <algorithm>
#include <cmath>

#include "rung/ops/pool/cpu/detail/results-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::pool_cpu::HWY_NAMESPACE {
namespace {

template <class T>
struct ClippedWindow {
  using S = Accumulator<T>;
  S result;
  std::int64_t position;  // of a maximum

  /// Clips window (oh, ow) of channel c of image n.
  HWY_INLINE ClippedWindow(const Pool::Args& args, std::int64_t n, std::int64_t c, std::int64_t oh,
                           std::int64_t ow) {
    const ConstTensorRef& x = args.x;
    const PoolTaps rows = args.rows.taps(oh);
    const PoolTaps columns = args.columns.taps(ow);
    const std::int64_t first_h = args.rows.start(oh) + rows.begin * args.rows.dilation;
    const std::int64_t first_w = args.columns.start(ow) + columns.begin * args.columns.dilation;
    const std::int64_t row_step = args.rows.dilation * x.strides[2];
    const std::int64_t column_step = args.columns.dilation * x.strides[3];
    const T* row = static_cast<const T*>(x.data) + n * x.strides[0] + c * x.strides[1] +
                   first_h * x.strides[2] + first_w * x.strides[3];
    const bool is_max = args.kind() == Pooling::max;
    result = is_max ? Maximum<S>::identity : S{0};
    position = first_h * args.columns.in + first_w;
    for (std::int64_t i = rows.begin; i < rows.end; ++i, row += row_step) {
      const T* at = row;
      for (std::int64_t j = columns.begin; j < columns.end; ++j, at += column_step) {
        const auto v = static_cast<S>(*at);
        switch (args.kind()) {
          case Pooling::max:
            if (!(v > result) && !std::isnan(v)) break;
            result = v;
            position = (first_h + (i - rows.begin) * args.rows.dilation) * args.columns.in +
                       first_w + (j - columns.begin) * args.columns.dilation;
            break;
          case Pooling::average:
            result += v;
            break;
          case Pooling::l2:
            result += v * v;
            break;
          case Pooling::weighted: {
            const ConstTensorRef& weights = args.options.weights;
            const auto* of = static_cast<const T*>(weights.data);
            result += static_cast<S>(of[i * weights.strides[0] + j * weights.strides[1]]) * v;
            break;
          }
        }
      }
    }
  }
};

/// Computes windows along a row of one channel, or of one position in consecutive channels,
/// whichever axis is contiguous in y.
template <class T>
void clipped_line(const Pool::Args& args, std::int64_t n, std::int64_t c, std::int64_t oh,
                  std::int64_t ow, std::int64_t count, bool along_channels,
                  PoolDivisors<T>& divisors, Accumulator<T>* results) {
  using S = Accumulator<T>;
  auto* const positions = reinterpret_cast<PositionOf<S>*>(results + block_results + slack);
  auto* const biases = results + 3 * (block_results + slack);
  const std::int64_t first = along_channels ? ow / block_results * block_results : ow;
  const std::int64_t windows = std::min(block_results, args.columns.out - first);
  const S* of = is_divided(args) ? divisors.of_block(oh, first, windows) + (ow - first) : nullptr;
  for (std::int64_t i = 0; i < count; ++i) {
    const ClippedWindow<T> window(args, n, along_channels ? c + i : c, oh,
                                  along_channels ? ow : ow + i);
    const S divisor = of == nullptr ? S{1} : of[along_channels ? 0 : i];
    results[i] = args.kind() == Pooling::average    ? window.result * divisor
                 : args.kind() == Pooling::weighted ? window.result / divisor
                 : args.kind() == Pooling::l2       ? std::sqrt(window.result)
                                                    : window.result;
    positions[i] = static_cast<PositionOf<S>>(window.position);
  }
  const int axis = along_channels ? 1 : 3;
  const auto offset = [&](const Extents& steps) {
    return n * steps[0] + c * steps[1] + oh * steps[2] + ow * steps[3];
  };
  if (args.has_indices()) {
    const TensorRef& indices = args.options.indices;
    store_positions(indices, offset(indices.strides), positions, count, indices.strides[axis]);
  }
  const ConstTensorRef& bias = args.options.bias;
  if (along_channels && bias.data != nullptr) {
    load_strided(static_cast<const T*>(bias.data) + c * bias.strides[0], bias.strides[0], count,
                 biases);
  }
  finish(args, c, along_channels ? biases : nullptr, results, count,
         static_cast<T*>(args.y.data) + offset(args.y.strides), args.y.strides[axis]);
}

}  // namespace

void clipped_windows(const Pool::Args& args, const void*, cpu::Range units, std::byte* scratch) {
  visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() HWY_ATTR {
    auto* const results = reinterpret_cast<Accumulator<T>*>(scratch);
    auto divisors = divisors_for<T>(args, results + 2 * (block_results + slack));
    const bool along_channels = has_contiguous_channels(args);
    for (std::int64_t unit = units.begin; unit < units.end; ++unit) {
      const std::int64_t plane = unit / args.rows.out;
      const std::int64_t oh = unit % args.rows.out;
      if (along_channels) {
        for (std::int64_t ow = 0; ow < args.columns.out; ++ow) {
          for (std::int64_t c = 0; c < args.channels(); c += block_results) {
            clipped_line(args, plane, c, oh, ow, std::min(block_results, args.channels() - c), true,
                         divisors, results);
          }
        }
        continue;
      }
      for (std::int64_t ow = 0; ow < args.columns.out; ow += block_results) {
        clipped_line(args, plane / args.channels(), plane % args.channels(), oh, ow,
                     std::min(block_results, args.columns.out - ow), false, divisors, results);
      }
    }
  });
}

}  // namespace rung::pool_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace pool_cpu {
HWY_EXPORT(clipped_windows);
Kernel clipped(const Pool::Args& args) {
  const std::int64_t lines = has_contiguous_channels(args) ? 1 : args.channels();
  return {.make =
              [](const Pool::Args& a, const void* weights, cpu::Range units, std::byte* scratch) {
                HWY_DYNAMIC_DISPATCH(clipped_windows)(a, weights, units, scratch);
              },
          .units = args.images() * args.rows.out * lines,
          .scratch_elements = 4 * (block_results + slack),  // results, positions, divisors, biases
          .copies_weights = false};
}
}  // namespace pool_cpu

namespace {

void run(const Pool::Args& args, Context& context) {
  pool_cpu::run_kernel(pool_cpu::clipped(args), args, context, 1);
}

const Rung<Pool> self{
    {.name = "clipped", .step = 15, .after = "naive", .teaching = true, .run = run}};

}  // namespace
}  // namespace rung
#endif
