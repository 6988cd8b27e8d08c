// SPDX-License-Identifier: Apache-2.0
// pool_backward / gather
//
// Idea     One thread per element of dx loops over the windows that contain it and sums their
//          contributions.
// Changes  baseline. A scatter from dy, as on a CPU, would need atomic additions, whose order
//          changes the bits from run to run.
// Cost     (kh / sh) (kw / sw) loads of dy per element, and as many of indices for max; most of
//          them hit the L1 cache.
// Limits   None.
#include "rung/ops/pool/shared/facts.hpp"
#include "rung/ops/pool_backward/cuda/detail/gradients.hpp"

namespace rung {
namespace {

using namespace pool_backward_cuda;

constexpr int threads = 256;
constexpr std::int64_t max_blocks = 0x7fffffff;

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

Work work(const PoolBackward::Args& args, const Context&) {
  return pool_facts(smaller(ceil_div(args.dx.size(), threads), max_blocks),
                    1 + windows_over_one(args));
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

const Rung<PoolBackward> self{
    {.name = "gather", .step = 10, .backend = device_backend, .work = work, .run = run}};

}  // namespace
}  // namespace rung
