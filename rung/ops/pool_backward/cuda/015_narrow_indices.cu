// SPDX-License-Identifier: Apache-2.0
// pool_backward / narrow indices
//
// Idea     gather with all indices in 32 bits: an element's position takes three multiplications
//          instead of three divisions of 64 bits; the range of windows over it takes two more
//          multiplications.
// Changes  Against gather, which spends 700 to 1000 instructions on an element: fewer instructions
//          of index arithmetic.
// Cost     As gather: (kh / sh) (kw / sw) loads of dy per element, and of a kind's other operands.
// Limits   Fewer than 2^31 elements; images of up to 2^29 along an axis.
// Source   H. Warren, Hacker's Delight, section 10-9.
#include "rung/device/divisor.hpp"
#include "rung/ops/pool/shared/facts.hpp"
#include "rung/ops/pool/shared/narrow_axis.hpp"
#include "rung/ops/pool_backward/cuda/detail/gradients.hpp"

namespace rung {
namespace {

using namespace pool_backward_cuda;

constexpr int threads = 256;

/// Constants for decoding a position in dx, and the windows over it.
struct Places {
  NarrowAxis rows, columns;
  Divisor height, width, channels;    // of dx
  Divisor row_stride, column_stride;  // of windows
  int windows_down, windows_across;
  int taps;  // counted by every window; 0: not constant
};

__device__ __forceinline__ NarrowTaps narrow_windows_over(const NarrowAxis& axis,
                                                          const Divisor& stride, int count,
                                                          int at) {
  const int place = at + axis.padding;
  const int behind = place - axis.span();
  return {behind < 0 ? 0 : static_cast<int>(stride.quotient(static_cast<unsigned>(behind))) + 1,
          smaller(count, static_cast<int>(stride.quotient(static_cast<unsigned>(place))) + 1)};
}
/// Returns the tap of window `o` at position `at`, which the window spans; -1 if there is none.
__device__ __forceinline__ int tap_at(const NarrowAxis& axis, int o, int at) {
  const int places = at - axis.start(o);
  if (axis.dilation == 1) return places;
  const int tap = places / axis.dilation;
  return tap * axis.dilation == places ? tap : -1;
}

/// Returns the divisor of an average's window.
template <class T>
__device__ __forceinline__ Accumulator<T> taps_of(const Gradients<T>& p, const Places& g, int oh,
                                                  int ow) {
  const int taps =
      g.taps != 0 ? g.taps
                  : g.rows.counted(oh, p.count_padding) * g.columns.counted(ow, p.count_padding);
  return static_cast<Accumulator<T>>(taps);
}

/// Computes one element of dx per thread. `apart`: windows do not overlap, so that at most one
/// contains an element.
template <Pooling kind, bool apart, class T, class Index>
__global__ void __launch_bounds__(threads)
    pool_backward_narrow_indices(Gradients<T> p, View<const Index, 4> indices, Places g,
                                 std::uint32_t count) {
  using Sum = Accumulator<T>;
  std::uint32_t rest = blockIdx.x * threads + threadIdx.x;
  if (rest >= count) return;
  int c = 0;
  if (p.channels_innermost) c = g.channels.take(rest);
  const int w = g.width.take(rest);
  const int h = g.height.take(rest);
  if (!p.channels_innermost) c = g.channels.take(rest);
  const std::int64_t n = rest;
  [[maybe_unused]] const int place = h * g.columns.in + w;  // compared to a maximum's index

  if constexpr (apart) {
    const auto down = static_cast<unsigned>(h + g.rows.padding);
    const auto across = static_cast<unsigned>(w + g.columns.padding);
    const int oh = static_cast<int>(g.row_stride.quotient(down));
    const int ow = static_cast<int>(g.column_stride.quotient(across));
    Sum slope = 0;
    if (oh < g.windows_down && ow < g.windows_across &&
        static_cast<int>(down) - oh * g.rows.stride < g.rows.kernel &&
        static_cast<int>(across) - ow * g.columns.stride < g.columns.kernel) {
      if constexpr (kind == Pooling::max) {
        if (indices(n, c, oh, ow) == place) slope = convert<Sum>(p.dy(n, c, oh, ow));
      } else {
        slope = convert<Sum>(p.dy(n, c, oh, ow)) / taps_of(p, g, oh, ow);
      }
    }
    p.dx(n, c, h, w) = convert<T>(slope);
    return;
  }

  const NarrowTaps rows = narrow_windows_over(g.rows, g.row_stride, g.windows_down, h);
  const NarrowTaps columns = narrow_windows_over(g.columns, g.column_stride, g.windows_across, w);
  Sum sum = 0;
  for (int oh = rows.begin; oh < rows.end; ++oh) {
    const int i = tap_at(g.rows, oh, h);
    if (i < 0) continue;
    const T* const dy = &p.dy(n, c, oh, 0);
#pragma unroll 2
    for (int ow = columns.begin; ow < columns.end; ++ow) {
      const int j = tap_at(g.columns, ow, w);
      if (j < 0) continue;
      const Sum slope = convert<Sum>(dy[ow * p.dy.strides[3]]);
      if constexpr (kind == Pooling::max) {
        if (indices(n, c, oh, ow) == place) sum += slope;
      } else if constexpr (kind == Pooling::l2) {
        const Sum y = convert<Sum>(p.y(n, c, oh, ow));
        if (y != 0) sum += slope * (convert<Sum>(p.x(n, c, h, w)) / y);
      } else if constexpr (kind == Pooling::average) {
        sum += slope / taps_of(p, g, oh, ow);
      } else {
        sum += slope / divisor_of<kind>(p, oh, ow) * convert<Sum>(p.weights(i, j));
      }
    }
  }
  p.dx(n, c, h, w) = convert<T>(sum);
}

Support supports(const PoolBackward::Args& args, const Context&) {
  return supports_narrow(args.rows, args.columns, args.dx.size());
}

/// Returns whether windows do not overlap, for max and average.
bool are_apart(const PoolBackward::Args& args) {
  const auto along = [](const PoolAxis& axis) {
    return axis.stride >= axis.kernel && axis.dilation == 1;
  };
  const bool kind = args.kind() == Pooling::max || args.kind() == Pooling::average;
  return kind && along(args.rows) && along(args.columns);
}

/// Returns the number of taps that an average counts if it is the same in every window; else 0.
int taps_everywhere(const PoolBackward::Args& args) {
  const auto whole = [&](const PoolAxis& axis) {
    return axis.has_all_taps(0, args.options.count_padding) &&
           axis.has_all_taps(axis.out - 1, args.options.count_padding);
  };
  return whole(args.rows) && whole(args.columns) ? static_cast<int>(args.taps()) : 0;
}

Work work(const PoolBackward::Args& args, const Context&) {
  return pool_facts(ceil_div(args.dx.size(), std::int64_t{threads}), 1 + windows_over_one(args));
}

void run(const PoolBackward::Args& args, Context& context) {
  const std::int64_t count = args.dx.size();
  const Places places{.rows = NarrowAxis::of(args.rows),
                      .columns = NarrowAxis::of(args.columns),
                      .height = Divisor::of(args.rows.in),
                      .width = Divisor::of(args.columns.in),
                      .channels = Divisor::of(args.channels()),
                      .row_stride = Divisor::of(args.rows.stride),
                      .column_stride = Divisor::of(args.columns.stride),
                      .windows_down = static_cast<int>(args.rows.out),
                      .windows_across = static_cast<int>(args.columns.out),
                      .taps = taps_everywhere(args)};
  const bool apart = are_apart(args);
  visit<float, double, f16, bf16>(args.dx.dtype, [&]<class T>() {
    const Gradients<T> p = gradients_of<T>(args);
    const auto start = [&]<Pooling kind, class Index>(const View<const Index, 4>& indices) {
      auto* kernel = pool_backward_narrow_indices<kind, false, T, Index>;
      if constexpr (kind == Pooling::max || kind == Pooling::average) {
        if (apart) kernel = pool_backward_narrow_indices<kind, true, T, Index>;
      }
      launch(context, {.grid = ceil_div(count, std::int64_t{threads}), .block = threads}, kernel, p,
             indices, places, static_cast<std::uint32_t>(count));
    };
    switch (args.kind()) {
      case Pooling::max:
        if (p.indices_i64.data != nullptr) {
          return start.template operator()<Pooling::max>(p.indices_i64);
        }
        return start.template operator()<Pooling::max>(p.indices_i32);
      case Pooling::average:
        return start.template operator()<Pooling::average>(p.indices_i32);
      case Pooling::l2:
        return start.template operator()<Pooling::l2>(p.indices_i32);
      case Pooling::weighted:
        return start.template operator()<Pooling::weighted>(p.indices_i32);
    }
  });
}

const Rung<PoolBackward> self{{.name = "narrow_indices",
                               .step = 15,
                               .after = "gather",
                               .backend = device_backend,
                               .supports = supports,
                               .work = work,
                               .run = run}};

}  // namespace
}  // namespace rung
