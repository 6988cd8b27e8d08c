// SPDX-License-Identifier: Apache-2.0
// conv_backward_data: its minimum cost, reference results, and error bounds.
#include <cstdint>

#include "rung/harness/inputs.hpp"
#include "rung/ops/conv/shared/oracle.hpp"
#include "rung/ops/conv_backward_data/op/conv_backward_data.hpp"

namespace rung {
namespace {

template <class T>
void refer_to_data(const ConvBackwardData::Args& args, Oracle::Output& output) {
  const auto dy = args.dy.view<const T, 5>();
  const auto w = args.w.view<const T, 5>();
  const ConvGeometry& g = args.geometry;
  conv_oracle::for_each(
      output, args.dx.shape, args.axes, args.options.channels_last,
      [&](double& value, double& magnitude, const std::int64_t(&at)[5]) {
        conv_oracle::Sum<conv_oracle::Real<T>> sum;
        const std::int64_t group = at[1] / g.group_channels();
        const std::int64_t first = group * g.group_filters();
        const std::int64_t c = at[1] - group * g.group_channels();
        conv_oracle::for_each_tap(
            g, [&](int axis, std::int64_t t) { return g.axis[axis].result(at[2 + axis], t); },
            [&](const std::int64_t(&t)[3], const std::int64_t(&o)[3]) {
              for (std::int64_t k = first; k < first + g.group_filters(); ++k) {
                sum.add(conv_oracle::wide(dy(at[0], k, o[0], o[1], o[2])) *
                        conv_oracle::wide(w(k, c, t[0], t[1], t[2])));
              }
            });
        value = static_cast<double>(sum.value);
        magnitude = static_cast<double>(sum.magnitude);
      });
}

}  // namespace

Cost ConvBackwardData::cost(const Args& args) {
  return conv_oracle::layer_cost(args.geometry, args.dx.dtype, args.dx, args.dy, args.w);
}

void ConvBackwardData::reference(const Args& args, Oracle& oracle) {
  visit<float, double, f16, bf16>(args.dx.dtype,
                                  [&]<class T>() { refer_to_data<T>(args, oracle.outputs.at(0)); });
}

Tolerance ConvBackwardData::tolerance(const Args& args, const RungInfo& rung, Values values) {
  const double terms = static_cast<double>(args.geometry.group_filters()) *
                       static_cast<double>(args.geometry.taps());
  return conv_oracle::sum_tolerance(args.dx.dtype, terms, values, rung);
}

}  // namespace rung
