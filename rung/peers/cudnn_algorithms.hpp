// SPDX-License-Identifier: Apache-2.0
// Meaning of cuDNN's numbers of convolution algorithms, without cuDNN's or CUDA's headers.
#pragma once

namespace rung::cudnn {

/// Direction of a convolution: computes y from x and the filter, x's gradient from the filter and
/// y's gradient, or the filter's gradient from x and y's gradient.
enum class Pass { forward, backward_data, backward_filter };

/// Returns whether an algorithm, numbered as in cudnnConvolution*Algo_t, transforms its operands
/// (Winograd, FFT) instead of summing the products that define a convolution: its results are
/// inexact even for small whole numbers.
constexpr bool is_transform(Pass pass, int algorithm) {
  switch (pass) {
    case Pass::forward:  // FFT, FFT_TILING, WINOGRAD, WINOGRAD_NONFUSED
      return algorithm >= 4 && algorithm <= 7;
    case Pass::backward_data:  // the same
      return algorithm >= 2 && algorithm <= 5;
    case Pass::backward_filter:  // FFT; WINOGRAD, WINOGRAD_NONFUSED, FFT_TILING; 3 is ALGO_3
      return algorithm == 2 || (algorithm >= 4 && algorithm <= 6);
  }
  return false;
}

}  // namespace rung::cudnn
