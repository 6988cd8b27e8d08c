// SPDX-License-Identifier: Apache-2.0
// Shapes and costs of the forward pass of a convolution layer.
#pragma once

#include <cmath>

namespace rung::bench {

/// An image axis: `input` elements with `padding` zeros on either side, and a filter of `window`
/// elements, `dilation` apart.
struct ConvAxis {
  double input = 0;
  double window = 0;
  double stride = 1;
  double padding = 0;
  double dilation = 1;

  /// Returns the extent of the dilated filter, from its first to its last element.
  [[nodiscard]] double reach() const { return dilation * (window - 1) + 1; }
  /// Returns the output extent, floor((input + 2 padding - reach) / stride) + 1; less than 1 if the
  /// filter does not fit.
  [[nodiscard]] double output() const {
    return std::floor((input + 2 * padding - reach()) / stride) + 1;
  }
};

struct ConvLayer {
  double images = 0, channels = 0, filters = 0, groups = 1;
  ConvAxis rows, columns;

  /// Returns the number of inputs per output: the filter's elements times the channels per group.
  [[nodiscard]] double window_elements() const {
    return channels / groups * rows.window * columns.window;
  }
  [[nodiscard]] double outputs() const {
    return images * filters * rows.output() * columns.output();
  }
  /// Returns the number of parameters: weights, and one bias per filter.
  [[nodiscard]] double parameters() const { return filters * (window_elements() + 1); }
  /// Returns the FLOP; a multiply-add counts as two.
  [[nodiscard]] double operations() const { return 2 * outputs() * window_elements(); }
  /// Returns the parameters of a dense layer from all inputs of an image to all outputs, with one
  /// bias per output.
  [[nodiscard]] double dense_parameters() const {
    const double out = outputs() / images;
    return out * (channels * rows.input * columns.input + 1);
  }
};

}  // namespace rung::bench
