// SPDX-License-Identifier: Apache-2.0
// pool / warp per window
//
// Idea     A large window, such as a whole plane at the end of a network, is a reduction: the lanes
//          of a warp divide its taps and combine their results.
// Changes  Against every_call, in which a thread loops over all taps of its window and few windows
//          leave most of the GPU idle: 32 times the threads, and adjacent lanes load adjacent taps.
// Cost     ceil(kh kw / 32) loads per lane and five shuffles. Lanes beyond the taps of a small
//          window idle.
// Limits   No indices.
#include "rung/device/collectives.hpp"
#include "rung/ops/pool/cuda/detail/images.hpp"
#include "rung/ops/pool/shared/facts.hpp"

namespace rung {
namespace {

using namespace pool_cuda;

constexpr int threads = 256;
constexpr int warps = threads / warp_size;
constexpr std::int64_t max_blocks = 0x7fffffff;

template <Pooling kind, class T>
__global__ void __launch_bounds__(threads) pool_warp_per_window(Images<T> p, std::int64_t count) {
  using Sum = Accumulator<T>;
  using Window = Pooled<kind, Sum>;
  const int lane = lane_of_thread();
  const std::int64_t step = std::int64_t{gridDim.x} * warps;
  for (std::int64_t i = std::int64_t{blockIdx.x} * warps + threadIdx.x / warp_size; i < count;
       i += step) {
    std::int64_t rest = i;
    OutputPosition at{};
    at.ow = take_axis(rest, p.columns.out);
    at.oh = take_axis(rest, p.rows.out);
    at.c = take_axis(rest, p.y.shape[1]);
    at.n = rest;
    const PoolTaps rows = p.rows.taps(at.oh);
    const PoolTaps columns = p.columns.taps(at.ow);
    const T* const from = &p.x(at.n, at.c, p.rows.start(at.oh) + rows.begin * p.rows.dilation,
                               p.columns.start(at.ow) + columns.begin * p.columns.dilation);
    const std::int64_t row_step = p.rows.dilation * p.x.strides[2];
    const std::int64_t column_step = p.columns.dilation * p.x.strides[3];
    const auto width = static_cast<std::uint32_t>(columns.count());
    const auto taps = static_cast<std::uint32_t>(rows.count() * columns.count());

    Window window;
    for (std::uint32_t tap = lane; tap < taps; tap += warp_size) {
      const std::uint32_t row = tap / width;
      const std::uint32_t column = tap - row * width;
      const Sum v = convert<Sum>(from[row * row_step + column * column_step]);
      if constexpr (kind == Pooling::weighted) {
        window.take_weighted(v, p.weight(rows.begin + row, columns.begin + column));
      } else {
        window.take(v);
      }
    }
    window.value = warp_reduce(window.value, [](Sum a, Sum b) {
      Window joined{.value = a};
      joined.join({.value = b});
      return joined.value;
    });
    if (lane == 0) finish(p, at, window.result(divisor_of<kind>(p, at.oh, at.ow)));
  }
}

Support supports(const Pool::Args& args, const Context&) {
  return args.has_indices() ? unsupported("no indices") : supported;
}

Work work(const Pool::Args& args, const Context&) {
  return pool_facts(smaller(ceil_div(args.y.size(), std::int64_t{warps}), max_blocks),
                    1 + ceil_div(args.taps(), std::int64_t{warp_size}));
}

void run(const Pool::Args& args, Context& context) {
  const std::int64_t count = args.y.size();
  with_kind_and_type(args, [&]<Pooling kind, class T>() {
    launch(context,
           {.grid = smaller(ceil_div(count, std::int64_t{warps}), max_blocks), .block = threads},
           pool_warp_per_window<kind, T>, images_of<T>(args), count);
  });
}

const Rung<Pool> self{{.name = "warp_per_window",
                       .after = "every_call",
                       .backend = device_backend,
                       .supports = supports,
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
