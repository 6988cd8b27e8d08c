// SPDX-License-Identifier: Apache-2.0
// conv: layers that Winograd's filtering supports, and its predicted time.
#include "rung/ops/conv/cpu/detail/winograd.hpp"

#include <algorithm>
#include <cmath>

#include "rung/ops/conv/shared/cpu/bands.hpp"
#include "rung/ops/conv/shared/layer.hpp"

namespace rung::conv_cpu {

Support takes_winograd(const Conv::Args& args, const Context&) {
  if (!args.options.winograd) return unsupported("only where winograd is given");
  if (args.x.dtype != DType::f32) return unsupported("f32 only");
  const ConvGeometry& g = args.geometry;
  if (g.axis[0].in != 1 || g.axis[0].kernel != 1 || g.axis[0].out != 1) {
    return unsupported("two dimensions");
  }
  for (const ConvAxis* axis : {&g.axis[1], &g.axis[2]}) {
    if (axis->kernel != 3 || axis->stride != 1 || axis->dilation != 1) {
      return unsupported("3 x 3, stride 1, dilation 1");
    }
  }
  // Transformed elements: filters shared by all threads, channels of 64 tiles per thread.
  constexpr std::int64_t places = 36, columns = 64, spare = 32;
  const auto filters = static_cast<double>(g.groups * places) *
                       static_cast<double>(g.group_channels() * g.group_filters() + spare);
  constexpr double of_tensors = 4;  // 36 positions for 9 taps
  if (g.group_channels() > 2 * max_copied_elements / (places * columns) ||
      !fits_tensors(conv_layer::forward(args), filters / of_tensors)) {
    return unsupported("transformed channels and filters that fit the scratch of a call");
  }
  return supported;
}

Work winograd_facts(const Conv::Args& args, int tile, int threads) {
  constexpr std::int64_t rows_of_tile = 6;
  const ConvGeometry& g = args.geometry;
  const std::int64_t area = (tile + 2) * (tile + 2), q = g.group_channels(), m = g.group_filters();
  const std::int64_t tiles = g.groups * g.images * ceil_div(g.axis[1].out, std::int64_t{tile}) *
                             ceil_div(g.axis[2].out, std::int64_t{tile});
  return {.operations = 2.0 * static_cast<double>(tiles * area * q * std::max(rows_of_tile, m)),
          .blocks = tiles,
          .steps = area * (q + m),
          .threads = threads};
}

}  // namespace rung::conv_cpu
