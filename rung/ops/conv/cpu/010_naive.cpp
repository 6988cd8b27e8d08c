// SPDX-License-Identifier: Apache-2.0
// conv / naive
//
// Idea     Evaluates the definition: loops over images, filters and pixels, and for each element of
//          y over channels and taps. Two image dimensions need seven loops, the depth axis adds
//          two.
// Changes  baseline.
// Cost     Two loads, a bounds check per axis and a dozen integer operations per multiply-add; the
//          additions of a sum form one dependency chain.
// Limits   None; 1 to 2 % of the machine's peak.
// Source   the definition.
#include "rung/ops/conv/cpu/detail/textbook.hpp"

namespace rung {
namespace {

template <class T>
void naive(const Conv::Args& args) {
  using Sum = Accumulator<T>;
  const auto x = args.x.view<const T, 5>();
  const auto w = args.w.view<const T, 5>();
  const auto y = args.y.view<T, 5>();
  const ConvGeometry& g = args.geometry;
  const auto& [depth, height, width] = g.axis;
  for (std::int64_t n = 0; n < g.images; ++n) {
    for (std::int64_t k = 0; k < g.filters; ++k) {
      const std::int64_t first = k / g.group_filters() * g.group_channels();
      for (std::int64_t od = 0; od < depth.out; ++od) {
        for (std::int64_t oh = 0; oh < height.out; ++oh) {
          for (std::int64_t ow = 0; ow < width.out; ++ow) {
            Sum sum = 0;
            for (std::int64_t c = 0; c < g.group_channels(); ++c) {
              for (std::int64_t td = 0; td < depth.kernel; ++td) {
                const std::int64_t d = depth.source(od, td);
                if (d < 0) continue;
                for (std::int64_t th = 0; th < height.kernel; ++th) {
                  const std::int64_t h = height.source(oh, th);
                  if (h < 0) continue;
                  for (std::int64_t tw = 0; tw < width.kernel; ++tw) {
                    const std::int64_t v = width.source(ow, tw);
                    if (v < 0) continue;
                    sum += static_cast<Sum>(x(n, first + c, d, h, v)) *
                           static_cast<Sum>(w(k, c, td, th, tw));
                  }
                }
              }
            }
            y(n, k, od, oh, ow) = conv_cpu::finish<T>(args, k, sum);
          }
        }
      }
    }
  }
}

Work work(const Conv::Args& args, const Context&) {
  return {.blocks = args.y.size(), .steps = args.terms()};
}

void run(const Conv::Args& args, Context&) {
  visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() { naive<T>(args); });
}

const Rung<Conv> self{{.name = "naive", .step = 10, .work = work, .run = run}};

}  // namespace
}  // namespace rung
