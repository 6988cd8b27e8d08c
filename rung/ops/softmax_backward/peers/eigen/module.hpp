// SPDX-License-Identifier: Apache-2.0
// Argument of librung_peer_softmax_backward_eigen_*.so.
#pragma once

#include <cstdint>

namespace rung::softmax_backward_eigen {

/// Contiguous rows whose starts are `*_step` elements apart.
template <class T>
struct EigenSoftmaxBackwardArguments {
  std::int64_t rows, length;
  const T* y;
  std::int64_t y_step;
  const T* dy;
  std::int64_t dy_step;
  T* dx;
  std::int64_t dx_step;
  T scale;
  bool log;
  int threads;
};

}  // namespace rung::softmax_backward_eigen
