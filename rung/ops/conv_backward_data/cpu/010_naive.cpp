// SPDX-License-Identifier: Apache-2.0
// conv_backward_data / naive
//
// Idea     For each element of dx, sums over the results that used it. Nothing is scattered, so
//          each element is written once, with a fixed order of additions.
// Changes  baseline.
// Cost     K/G times the taps multiply-adds per element, a division and bounds checks per tap; with
//          a stride of s only one tap in s, along each axis, has a result.
// Limits   None; one thread.
// Source   the definition.
#include "rung/core/dtype.hpp"
#include "rung/ops/conv_backward_data/op/conv_backward_data.hpp"

namespace rung {
namespace {

template <class T>
void naive_data(const ConvBackwardData::Args& args) {
  using Sum = Accumulator<T>;
  const auto dy = args.dy.view<const T, 5>();
  const auto w = args.w.view<const T, 5>();
  const auto dx = args.dx.view<T, 5>();
  const ConvGeometry& g = args.geometry;
  const auto& [depth, height, width] = g.axis;
  for (std::int64_t n = 0; n < g.images; ++n) {
    for (std::int64_t c = 0; c < g.channels; ++c) {
      const std::int64_t group = c / g.group_channels();
      const std::int64_t first = group * g.group_filters();
      for (std::int64_t d = 0; d < depth.in; ++d) {
        for (std::int64_t h = 0; h < height.in; ++h) {
          for (std::int64_t v = 0; v < width.in; ++v) {
            Sum sum = 0;
            for (std::int64_t k = first; k < first + g.group_filters(); ++k) {
              for (std::int64_t td = 0; td < depth.kernel; ++td) {
                const std::int64_t od = depth.result(d, td);
                if (od < 0) continue;
                for (std::int64_t th = 0; th < height.kernel; ++th) {
                  const std::int64_t oh = height.result(h, th);
                  if (oh < 0) continue;
                  for (std::int64_t tw = 0; tw < width.kernel; ++tw) {
                    const std::int64_t ow = width.result(v, tw);
                    if (ow < 0) continue;
                    sum += static_cast<Sum>(dy(n, k, od, oh, ow)) *
                           static_cast<Sum>(w(k, c - group * g.group_channels(), td, th, tw));
                  }
                }
              }
            }
            dx(n, c, d, h, v) = static_cast<T>(sum);
          }
        }
      }
    }
  }
}

Work work(const ConvBackwardData::Args&, const Context&) { return {}; }

void run(const ConvBackwardData::Args& args, Context&) {
  visit<float, double, f16, bf16>(args.dx.dtype, [&]<class T>() { naive_data<T>(args); });
}

const Rung<ConvBackwardData> self{{.name = "naive", .step = 10, .work = work, .run = run}};

}  // namespace
}  // namespace rung
