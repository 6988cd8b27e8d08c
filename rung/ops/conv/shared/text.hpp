// SPDX-License-Identifier: Apache-2.0
// Layers in the text of problems and command lines, for conv and its gradients.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string_view>

#include "rung/core/per_axis.hpp"
#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"
#include "rung/harness/problem.hpp"
#include "rung/harness/problem_writer.hpp"
#include "rung/ops/conv/op/conv.hpp"
#include "rung/ops/conv/shared/axes.hpp"

namespace rung::conv_text {

/// Reads stride, padding and dilation. `from` has text(); `spatial` is the number of image axes.
template <class Source, class Options>
void read_windows(std::string_view op, const Source& from, int spatial, bool long_names,
                  Options& options) {
  const auto numbers = [&](std::string_view brief, std::string_view full,
                           std::string_view otherwise) {
    const std::string_view name = long_names ? full : brief;
    return fewest_numbers(parse_per_axis(op, name, from.text(name, otherwise), spatial), spatial);
  };
  options.stride = numbers("s", "stride", "1");
  options.padding = numbers("p", "padding", "0");
  options.dilation = numbers("d", "dilation", "1");
}

/// Shapes of a layer's tensors, in the caller's order of axes.
struct Shapes {
  Extents x, w, y;
};

/// Reads a problem's extents, filters and windows into shapes and options.
template <class Options>
Shapes read_layer(std::string_view op, const Problem& problem, Options& options) {
  const auto rank = static_cast<int>(problem.extents.size());
  if (rank < 3 || rank > 5) {
    reject(op, fmt::format("{} extents; accepted: 3 to 5, NxCxW to NxCxDxHxW", rank));
  }
  const int spatial = rank - 2;
  read_windows(op, problem, spatial, false, options);
  options.groups = static_cast<int>(problem.integer("g", 1, {1, INT32_MAX}));
  options.channels_last = problem.has("nhwc");
  const Extents x{std::span<const std::int64_t>(problem.extents)};
  const std::int64_t filters = problem.integer("out", x[1], Problem::count);
  const PerAxis kernel = parse_per_axis(op, "k", problem.text("k", "3"), spatial);
  Extents w{filters, x[1] / options.groups};
  Extents y{x[0], filters};
  w.rank = y.rank = rank;
  for (int axis = 0; axis < spatial; ++axis) {
    const int of_three = 3 - spatial + axis;
    w[2 + axis] = kernel.along(axis);
    y[2 + axis] = conv_axes::axis_of(op, conv_axes::axis_names[of_three], x[2 + axis], w[2 + axis],
                                     conv_axes::window_of(options, of_three, spatial))
                      .out;
  }
  const bool last = options.channels_last;
  return {conv_axes::given_order(x, last), conv_axes::given_order(w, last),
          conv_axes::given_order(y, last)};
}

/// Writes the text that read_layer() reads, from the shapes of x and w and a call's options.
template <class Options>
ProblemWriter describe_layer(DType dtype, const Extents& x_shape, const Extents& w_shape,
                             const Options& options) {
  const int spatial = x_shape.rank - 2;
  const Extents x = conv_axes::channels_first(x_shape, options.channels_last);
  const Extents w = conv_axes::channels_first(w_shape, options.channels_last);
  PerAxis kernel;
  for (; kernel.count < spatial; ++kernel.count) {
    kernel.at[kernel.count] = static_cast<int>(w[2 + kernel.count]);
  }
  ProblemWriter writer(dtype, x);
  writer.integer("out", w[0], x[1])
      .per_axis("k", kernel, spatial, 3)
      .per_axis("s", options.stride, spatial, 1)
      .per_axis("p", options.padding, spatial, 0)
      .per_axis("d", options.dilation, spatial, 1)
      .integer("g", options.groups, 1)
      .flag("nhwc", options.channels_last);
  return writer;
}

}  // namespace rung::conv_text
