// SPDX-License-Identifier: Apache-2.0
// Shapes and costs of a convolution layer, forward.
#pragma once

#include <cmath>

namespace rung::bench {

/// An axis of `input` elements with `padding` zeros on either side, and a window of `window`
/// elements that are `dilation` apart.
struct ConvAxis {
  double input = 0;
  double window = 0;
  double stride = 1;
  double padding = 0;
  double dilation = 1;

  /// Elements from the window's first to its last.
  [[nodiscard]] double reach() const { return dilation * (window - 1) + 1; }
  /// floor((input + 2 padding - reach) / stride) + 1; less than 1: the window does not fit.
  [[nodiscard]] double output() const {
    return std::floor((input + 2 * padding - reach()) / stride) + 1;
  }
};

struct ConvLayer {
  double images = 0, channels = 0, filters = 0, groups = 1;
  ConvAxis rows, columns;

  /// Returns the elements that one output is computed from: the window in its group's channels.
  [[nodiscard]] double window_elements() const {
    return channels / groups * rows.window * columns.window;
  }
  [[nodiscard]] double outputs() const {
    return images * filters * rows.output() * columns.output();
  }
  /// Weights and a bias per filter.
  [[nodiscard]] double parameters() const { return filters * (window_elements() + 1); }
  /// A multiply-add is two.
  [[nodiscard]] double operations() const { return 2 * outputs() * window_elements(); }
  /// A dense layer from all inputs of an image to all its outputs, with a bias each.
  [[nodiscard]] double dense_parameters() const {
    const double out = outputs() / images;
    return out * (channels * rows.input * columns.input + 1);
  }
};

}  // namespace rung::bench
