// SPDX-License-Identifier: Apache-2.0
// What cuDNN's numbers for algorithms of convolutions mean. Without its headers, and without
// CUDA's.
#pragma once

namespace rung::cudnn {

/// Direction of a convolution: y from x and the filter, x's gradient from the filter and y's, or
/// the filter's from x and y's.
enum class Pass { forward, backward_data, backward_filter };

/// Returns whether an algorithm, as cudnnConvolution*Algo_t numbers them, adds up something else
/// than the products that define a convolution: Winograd's and Fourier transforms, which are not
/// exact even for small whole numbers.
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
