// SPDX-License-Identifier: Apache-2.0
// conv: its minimum cost, reference results, and error bounds.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "rung/harness/inputs.hpp"
#include "rung/ops/conv/op/conv.hpp"
#include "rung/ops/conv/shared/oracle.hpp"

namespace rung {
namespace {

/// Returns the error scale of a transformed layer: the sum over channels of the largest |x| around
/// a pixel times the filter's largest |w|.
template <class T>
double magnitude_of_tiles(const Conv::Args& args, const std::int64_t (&at)[5]) {
  constexpr std::int64_t reach = 5;  // a tile of 6 x 6 holds the pixel's window
  const auto x = args.x.view<const T, 5>();
  const auto w = args.w.view<const T, 5>();
  const ConvGeometry& g = args.geometry;
  const std::int64_t first = at[1] / g.group_filters() * g.group_channels();
  double sum = 0;
  for (std::int64_t c = 0; c < g.group_channels(); ++c) {
    double of_w = 0;
    double of_x = 0;
    for (std::int64_t i = 0; i < g.axis[1].kernel; ++i) {
      for (std::int64_t j = 0; j < g.axis[2].kernel; ++j) {
        of_w =
            std::max(of_w, std::abs(static_cast<double>(conv_oracle::wide(w(at[1], c, 0, i, j)))));
      }
    }
    const std::int64_t row = at[3] - g.axis[1].padding;
    const std::int64_t column = at[4] - g.axis[2].padding;
    for (std::int64_t h = std::max<std::int64_t>(0, row - reach);
         h < std::min(g.axis[1].in, row + reach + 1); ++h) {
      for (std::int64_t v = std::max<std::int64_t>(0, column - reach);
           v < std::min(g.axis[2].in, column + reach + 1); ++v) {
        const double value = static_cast<double>(conv_oracle::wide(x(at[0], first + c, 0, h, v)));
        of_x = std::max(of_x, std::abs(value));
      }
    }
    sum += of_w * of_x;
  }
  return sum;
}

template <class T>
void refer(const Conv::Args& args, Oracle::Output& output) {
  using R = conv_oracle::Real<T>;
  const auto x = args.x.view<const T, 5>();
  const auto w = args.w.view<const T, 5>();
  const ConvGeometry& g = args.geometry;
  const bool tiles = args.options.winograd && g.axis[0].in == 1;
  conv_oracle::for_each(
      output, args.y.shape, args.axes, args.options.channels_last,
      [&](double& value, double& magnitude, const std::int64_t(&at)[5]) {
        conv_oracle::Sum<R> sum;
        const std::int64_t first = at[1] / g.group_filters() * g.group_channels();
        conv_oracle::for_each_tap(
            g, [&](int axis, std::int64_t t) { return g.axis[axis].source(at[2 + axis], t); },
            [&](const std::int64_t(&t)[3], const std::int64_t(&from)[3]) {
              for (std::int64_t c = 0; c < g.group_channels(); ++c) {
                sum.add(conv_oracle::wide(x(at[0], first + c, from[0], from[1], from[2])) *
                        conv_oracle::wide(w(at[1], c, t[0], t[1], t[2])));
              }
            });
        if (tiles) sum.magnitude = std::max<R>(sum.magnitude, magnitude_of_tiles<T>(args, at));
        if (args.has_bias())
          sum.add(conv_oracle::wide(args.options.bias.view<const T, 1>()(at[1])));
        value = static_cast<double>(reference_activation(args.options.activation, sum.value));
        magnitude = static_cast<double>(sum.magnitude);
      });
}

}  // namespace

Cost Conv::cost(const Args& args) {
  return conv_oracle::layer_cost(args.geometry, args.x.dtype, args.y, args.x, args.w);
}

void Conv::reference(const Args& args, Oracle& oracle) {
  visit<float, double, f16, bf16>(args.x.dtype,
                                  [&]<class T>() { refer<T>(args, oracle.outputs.at(0)); });
}

Tolerance Conv::tolerance(const Args& args, const RungInfo& rung, Values values) {
  const auto terms = static_cast<double>(args.terms());
  Tolerance tolerance = conv_oracle::sum_tolerance(args.x.dtype, terms, values, rung);
  const double unit = epsilon(args.x.dtype == DType::f64 ? DType::f64 : DType::f32) / 2;
  if (rung.name.starts_with("winograd")) {
    tolerance.magnitude = (static_cast<double>(args.geometry.group_channels()) + 24) * unit * 3000;
  }
  if (rung.name == "f16_arithmetic") {
    // A chain of eight multiply-adds, each rounded to f16 or, if subnormal, to a multiple of the
    // smallest f16.
    if (values != Values::integers) tolerance.magnitude += 8 * epsilon(DType::f16) / 2 * 1.01;
    tolerance.absolute += (terms + 1) * 0x1p-25;
  }
  if (args.options.activation != Activation::none) {
    tolerance.magnitude *= 1.13;      // maximum slope, of gelu
    tolerance.magnitude += 4 * unit;  // gelu: x times erf, which errs by a few units
    tolerance.relative += 8 * unit;
    tolerance.absolute += 4 * unit;
  }
  return tolerance;
}

}  // namespace rung
