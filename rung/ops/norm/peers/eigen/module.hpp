// SPDX-License-Identifier: Apache-2.0
// The C interface of librung_peer_norm_eigen_*.so: what the norm peer Eigen loads. A module for
// each instruction set, because Eigen chooses its instructions when it is compiled.
#pragma once

#include <cstdint>

namespace rung::norm_eigen {

/// Contiguous rows, `*_step` elements apart; gamma and beta contiguous, or null.
template <class T>
struct Call {
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

/// The module's symbols, all extern "C".
using RunF32 = void(const Call<float>* call);   // rung_norm_eigen_f32
using RunF64 = void(const Call<double>* call);  // rung_norm_eigen_f64
using Version = int();                          // rung_norm_eigen_version: 30400 for 3.4.0

}  // namespace rung::norm_eigen
