// SPDX-License-Identifier: Apache-2.0
// pool_backward / gather
//
// Idea     a thread per element of dx, which looks at the windows over its place and adds up what
//          each of them gives.
// Changes  nothing yet: this is where the ladder stands. A scatter from dy, as on a CPU, would need
//          atomic additions, and with that give other bits from run to run.
// Cost     (kh / sh) (kw / sw) loads of dy per element, and as many of indices for max; most come
//          from the L1 cache.
// Limits   every valid call.
// Tried    -
// Source   -
#include <cstdint>

#include "rung/core/require.hpp"
#include "rung/device/load.hpp"
#include "rung/ops/pool_backward/pool_backward.hpp"

namespace rung {
namespace {

constexpr int threads = 256;
constexpr std::int64_t max_blocks = 0x7fffffff;

template <class T>
struct Gradients {
  View<const T, 4> dy;
  View<T, 4> dx;
  View<const std::int32_t, 4> indices_i32;  // of max: one of these has data
  View<const std::int64_t, 4> indices_i64;
  View<const T, 4> x;  // of l2
  View<const T, 4> y;
  View<const T, 2> weights;  // of weighted
  PoolAxis rows;
  PoolAxis columns;
  bool count_padding;
  bool channels_innermost;
};

template <Pooling kind, class T>
__device__ __forceinline__ Accumulator<T> divisor_of(const Gradients<T>& p, std::int64_t oh,
                                                     std::int64_t ow) {
  using Sum = Accumulator<T>;
  const bool padded = p.count_padding;
  const PoolTaps rows = padded ? PoolTaps{0, p.rows.padded_taps(oh)} : p.rows.taps(oh);
  const PoolTaps columns = padded ? PoolTaps{0, p.columns.padded_taps(ow)} : p.columns.taps(ow);
  if constexpr (kind == Pooling::average) return static_cast<Sum>(rows.count() * columns.count());
  Sum sum = 0;
  for (std::int64_t i = rows.begin; i < rows.end; ++i) {
    for (std::int64_t j = columns.begin; j < columns.end; ++j) {
      sum += convert<Sum>(p.weights(i, j));
    }
  }
  return sum;
}

template <Pooling kind, class T>
__global__ void __launch_bounds__(threads)
    pool_backward_gather(Gradients<T> p, std::int64_t count) {
  using Sum = Accumulator<T>;
  const std::int64_t step = std::int64_t{gridDim.x} * threads;
  for (std::int64_t at = std::int64_t{blockIdx.x} * threads + threadIdx.x; at < count; at += step) {
    std::int64_t rest = at;
    std::int64_t c = 0;
    if (p.channels_innermost) {
      c = rest % p.dx.shape[1];
      rest /= p.dx.shape[1];
    }
    const std::int64_t w = rest % p.columns.in;
    rest /= p.columns.in;
    const std::int64_t h = rest % p.rows.in;
    rest /= p.rows.in;
    if (!p.channels_innermost) {
      c = rest % p.dx.shape[1];
      rest /= p.dx.shape[1];
    }
    const std::int64_t n = rest;

    const PoolTaps rows = p.rows.windows_over(h);
    const PoolTaps columns = p.columns.windows_over(w);
    Sum sum = 0;
    for (std::int64_t oh = rows.begin; oh < rows.end; ++oh) {
      const std::int64_t i = p.rows.tap_at(oh, h);
      if (i < 0) continue;
      for (std::int64_t ow = columns.begin; ow < columns.end; ++ow) {
        const std::int64_t j = p.columns.tap_at(ow, w);
        if (j < 0) continue;
        const Sum dy = convert<Sum>(p.dy(n, c, oh, ow));
        if constexpr (kind == Pooling::max) {
          const std::int64_t index = p.indices_i64.data != nullptr
                                         ? p.indices_i64(n, c, oh, ow)
                                         : std::int64_t{p.indices_i32(n, c, oh, ow)};
          if (index == h * p.columns.in + w) sum += dy;
        } else if constexpr (kind == Pooling::l2) {
          const Sum y = convert<Sum>(p.y(n, c, oh, ow));
          if (y != 0) sum += dy * (convert<Sum>(p.x(n, c, h, w)) / y);
        } else if constexpr (kind == Pooling::average) {
          sum += dy / divisor_of<kind>(p, oh, ow);
        } else {
          sum += dy / divisor_of<kind>(p, oh, ow) * convert<Sum>(p.weights(i, j));
        }
      }
    }
    p.dx(n, c, h, w) = convert<T>(sum);
  }
}

template <class T>
Gradients<T> gradients_of(const PoolBackward::Args& args) {
  const PoolBackwardOptions& options = args.options;
  Gradients<T> p{};
  p.dy = args.dy.view<const T, 4>();
  p.dx = args.dx.view<T, 4>();
  p.rows = args.rows;
  p.columns = args.columns;
  p.count_padding = options.count_padding;
  p.channels_innermost = args.dx.strides[1] == 1;
  if (options.kind == Pooling::max && options.indices.dtype == DType::i32) {
    p.indices_i32 = options.indices.view<const std::int32_t, 4>();
  } else if (options.kind == Pooling::max) {
    p.indices_i64 = options.indices.view<const std::int64_t, 4>();
  }
  if (options.kind == Pooling::l2) {
    p.x = options.x.view<const T, 4>();
    p.y = options.y.view<const T, 4>();
  }
  if (options.kind == Pooling::weighted) p.weights = options.weights.view<const T, 2>();
  return p;
}

void run(const PoolBackward::Args& args, Context& context) {
  const std::int64_t count = args.dx.size();
  const std::int64_t blocks = smaller(ceil_div(count, threads), max_blocks);
  visit<float, double, f16, bf16>(args.dx.dtype, [&]<class T>() {
    const auto start = [&]<Pooling kind>() {
      launch(context, {.grid = blocks, .block = threads}, pool_backward_gather<kind, T>,
             gradients_of<T>(args), count);
    };
    switch (args.kind()) {
      case Pooling::max:
        return start.template operator()<Pooling::max>();
      case Pooling::average:
        return start.template operator()<Pooling::average>();
      case Pooling::l2:
        return start.template operator()<Pooling::l2>();
      case Pooling::weighted:
        return start.template operator()<Pooling::weighted>();
    }
  });
}

const Rung<PoolBackward> self{{.name = "gather",
                               .step = 10,
                               .backend = device_backend,
                               .speed = {.bandwidth = 0.3},
                               .run = run}};

}  // namespace
}  // namespace rung
