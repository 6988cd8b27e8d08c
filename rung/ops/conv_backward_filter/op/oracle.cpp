// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter: its minimum cost, reference results, and error bounds.
#include <cstdint>

#include "rung/harness/inputs.hpp"
#include "rung/ops/conv/shared/oracle.hpp"
#include "rung/ops/conv_backward_filter/op/conv_backward_filter.hpp"

namespace rung {
namespace {

template <class T>
void refer_to_filter(const ConvBackwardFilter::Args& args, Oracle::Output& output) {
  const auto dy = args.dy.view<const T, 5>();
  const auto x = args.x.view<const T, 5>();
  const ConvGeometry& g = args.geometry;
  conv_oracle::for_each(output, args.dw.shape, args.axes, args.options.channels_last,
                        [&](double& value, double& magnitude, const std::int64_t(&at)[5]) {
                          conv_oracle::Sum<conv_oracle::Real<T>> sum;
                          const std::int64_t c =
                              at[0] / g.group_filters() * g.group_channels() + at[1];
                          for (std::int64_t n = 0; n < g.images; ++n) {
                            for (std::int64_t o0 = 0; o0 < g.axis[0].out; ++o0) {
                              const std::int64_t d = g.axis[0].source(o0, at[2]);
                              if (d < 0) continue;
                              for (std::int64_t o1 = 0; o1 < g.axis[1].out; ++o1) {
                                const std::int64_t h = g.axis[1].source(o1, at[3]);
                                if (h < 0) continue;
                                for (std::int64_t o2 = 0; o2 < g.axis[2].out; ++o2) {
                                  const std::int64_t v = g.axis[2].source(o2, at[4]);
                                  if (v < 0) continue;
                                  sum.add(conv_oracle::wide(dy(n, at[0], o0, o1, o2)) *
                                          conv_oracle::wide(x(n, c, d, h, v)));
                                }
                              }
                            }
                          }
                          value = static_cast<double>(sum.value);
                          magnitude = static_cast<double>(sum.magnitude);
                        });
}

}  // namespace

Cost ConvBackwardFilter::cost(const Args& args) {
  return conv_oracle::layer_cost(args.geometry, args.dw.dtype, args.dw, args.x, args.dy);
}

void ConvBackwardFilter::reference(const Args& args, Oracle& oracle) {
  visit<float, double, f16, bf16>(
      args.dw.dtype, [&]<class T>() { refer_to_filter<T>(args, oracle.outputs.at(0)); });
}

Tolerance ConvBackwardFilter::tolerance(const Args& args, const RungInfo& rung, Values values) {
  const double terms =
      static_cast<double>(args.geometry.images) * static_cast<double>(args.geometry.results());
  return conv_oracle::sum_tolerance(args.dw.dtype, terms, values, rung);
}

}  // namespace rung
