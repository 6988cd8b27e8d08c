// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter / warp per tap
//
// Idea     One warp per element of dw: its lanes divide the results of all images, and their sums
//          are combined in the order of the lanes.
// Changes  baseline. One thread per result with atomic additions to dw would contend for a few
//          addresses, and the bits would change from run to run.
// Cost     Two loads and bounds checks per multiply-add; dy is read C/G kh kw times, x K/G kh kw
//          times, from the caches if they fit.
// Limits   None.
#include "rung/device/block_work.hpp"
#include "rung/device/collectives.hpp"
#include "rung/ops/conv/shared/cuda/layer.hpp"
#include "rung/ops/conv_backward_filter/op/conv_backward_filter.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

constexpr int threads = 128;
constexpr std::int64_t max_blocks = 0x7fffffff;

template <class T>
__global__ void __launch_bounds__(threads)
    conv_backward_filter_warp_per_tap(View<const T, 5> x, View<const T, 5> dy, View<T, 5> dw,
                                      ConvGeometry g, std::int64_t count) {
  using Sum = Accumulator<T>;
  const std::int64_t results = g.images * g.results();
  const std::int64_t warps = std::int64_t{gridDim.x} * (threads / warp_size);
  const int lane = lane_of_thread();
  std::int64_t i = std::int64_t{blockIdx.x} * (threads / warp_size) + threadIdx.x / warp_size;
  for (; i < count; i += warps) {
    const ElementPosition to = position_of(dw, i, dw.strides[1] == 1);
    const std::int64_t c = to.n / g.group_filters() * g.group_channels() + to.c;
    Sum sum = 0;
    for (std::int64_t r = lane; r < results; r += warp_size) {
      std::int64_t rest = r;
      const std::int64_t ow = take_axis(rest, g.axis[2].out);
      const std::int64_t oh = take_axis(rest, g.axis[1].out);
      const std::int64_t od = take_axis(rest, g.axis[0].out);
      const std::int64_t v = g.axis[2].source(ow, to.w);
      const std::int64_t h = g.axis[1].source(oh, to.h);
      const std::int64_t d = g.axis[0].source(od, to.d);
      if (v < 0 || h < 0 || d < 0) continue;
      sum += convert<Sum>(dy(rest, to.n, od, oh, ow)) * convert<Sum>(x(rest, c, d, h, v));
    }
    sum = warp_reduce(sum, [](Sum a, Sum b) { return a + b; });
    if (lane == 0) dw(to.n, to.c, to.d, to.h, to.w) = convert<T>(sum);
  }
}

void run(const ConvBackwardFilter::Args& args, Context& context) {
  const std::int64_t count = args.dw.size();
  visit<float, double, f16, bf16>(args.dw.dtype, [&]<class T>() {
    launch(context,
           {.grid = smaller(ceil_div(count, threads / warp_size), max_blocks), .block = threads},
           conv_backward_filter_warp_per_tap<T>, args.x.view<const T, 5>(),
           args.dy.view<const T, 5>(), args.dw.view<T, 5>(), args.geometry, count);
  });
}

/// Returns the work of a layer. A lane processes its results in sequence, however few taps exist,
/// and waits for its loads. A load takes a cycle per line, the other instructions some sixteen.
Work work(const ConvBackwardFilter::Args& args, const Context&) {
  const ConvGeometry& g = args.geometry;
  const std::int64_t trips = ceil_div(g.images * g.results(), std::int64_t{warp_size});
  const auto lines = [&](std::int64_t apart) {
    return lines_of_load(apart * static_cast<std::int64_t>(size_of(args.dw.dtype)));
  };
  constexpr int registers = 48;
  Work work = block_work(smaller(ceil_div(args.dw.size(), threads / warp_size), max_blocks),
                         threads, trips, args.dw.dtype == DType::f64 ? "f64" : "", registers);
  work.steps =
      trips * (16 + lines(args.dy.strides[4]) + lines(args.x.strides[4] * g.axis[2].stride));
  return work;
}

const Rung<ConvBackwardFilter> self{
    {.name = "warp_per_tap", .step = 10, .backend = device_backend, .work = work, .run = run}};

}  // namespace
}  // namespace rung
