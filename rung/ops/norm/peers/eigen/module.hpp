// SPDX-License-Identifier: Apache-2.0
// Argument of librung_peer_norm_eigen_*.so.
#pragma once

#include <cstdint>

namespace rung::norm_eigen {

/// Contiguous rows whose starts are `*_step` elements apart; gamma and beta contiguous, or null.
template <class T>
struct EigenNormArguments {
  std::int64_t rows, length;
  const T* x;
  std::int64_t x_step;
  T* y;
  std::int64_t y_step;
  const T* gamma;
  const T* beta;
  T epsilon;
  bool rms;
  int threads;
};

}  // namespace rung::norm_eigen
