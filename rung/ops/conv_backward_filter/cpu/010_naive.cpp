// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter / naive
//
// Idea     For each element of dw, sums over all results of all images: each dy times the element
//          of x that the tap read.
// Changes  baseline.
// Cost     Two loads and bounds checks per multiply-add; one dependency chain of additions per
//          element, as long as the number of results.
// Limits   None; one thread.
// Source   the definition.
#include "rung/core/dtype.hpp"
#include "rung/ops/conv_backward_filter/op/conv_backward_filter.hpp"

namespace rung {
namespace {

/// Returns one element of dw.
template <class T>
Accumulator<T> sum_over_results(const ConvBackwardFilter::Args& args, std::int64_t k,
                                std::int64_t c, const std::int64_t (&t)[3]) {
  using Sum = Accumulator<T>;
  const auto x = args.x.view<const T, 5>();
  const auto dy = args.dy.view<const T, 5>();
  const ConvGeometry& g = args.geometry;
  const auto& [depth, height, width] = g.axis;
  Sum sum = 0;
  for (std::int64_t n = 0; n < g.images; ++n) {
    for (std::int64_t od = 0; od < depth.out; ++od) {
      const std::int64_t d = depth.source(od, t[0]);
      if (d < 0) continue;
      for (std::int64_t oh = 0; oh < height.out; ++oh) {
        const std::int64_t h = height.source(oh, t[1]);
        if (h < 0) continue;
        for (std::int64_t ow = 0; ow < width.out; ++ow) {
          const std::int64_t v = width.source(ow, t[2]);
          if (v < 0) continue;
          sum += static_cast<Sum>(dy(n, k, od, oh, ow)) * static_cast<Sum>(x(n, c, d, h, v));
        }
      }
    }
  }
  return sum;
}

template <class T>
void naive_filter(const ConvBackwardFilter::Args& args) {
  const auto dw = args.dw.view<T, 5>();
  const ConvGeometry& g = args.geometry;
  for (std::int64_t k = 0; k < g.filters; ++k) {
    const std::int64_t first = k / g.group_filters() * g.group_channels();
    for (std::int64_t c = 0; c < g.group_channels(); ++c) {
      for (std::int64_t td = 0; td < g.axis[0].kernel; ++td) {
        for (std::int64_t th = 0; th < g.axis[1].kernel; ++th) {
          for (std::int64_t tw = 0; tw < g.axis[2].kernel; ++tw) {
            dw(k, c, td, th, tw) =
                static_cast<T>(sum_over_results<T>(args, k, first + c, {td, th, tw}));
          }
        }
      }
    }
  }
}

Work work(const ConvBackwardFilter::Args& args, const Context&) {
  // One dependency chain of additions; the taps' bounds are checked once per row of results.
  const ConvGeometry& g = args.geometry;
  return {.blocks = g.images * g.axis[0].out * g.axis[1].out * args.dw.size(),
          .steps = g.axis[2].out};
}

void run(const ConvBackwardFilter::Args& args, Context&) {
  visit<float, double, f16, bf16>(args.dw.dtype, [&]<class T>() { naive_filter<T>(args); });
}

const Rung<ConvBackwardFilter> self{{.name = "naive", .step = 10, .work = work, .run = run}};

}  // namespace
}  // namespace rung
