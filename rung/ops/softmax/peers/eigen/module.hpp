// SPDX-License-Identifier: Apache-2.0
// Argument of librung_peer_softmax_eigen_*.so.
#pragma once

#include <cstdint>

namespace rung::softmax_eigen {

/// Contiguous rows whose starts are `*_step` elements apart.
template <class T>
struct EigenSoftmaxArguments {
  std::int64_t rows, length;
  const T* x;
  std::int64_t x_step;
  T* y;
  std::int64_t y_step;
  T scale;
  bool log;
  int threads;
};

}  // namespace rung::softmax_eigen
