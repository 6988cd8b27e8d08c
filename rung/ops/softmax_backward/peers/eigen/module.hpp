// SPDX-License-Identifier: Apache-2.0
// The C interface of librung_peer_softmax_backward_eigen_*.so: what the peer Eigen of
// softmax_backward loads. A module for each instruction set, because Eigen chooses its instructions
// when it is compiled.
#pragma once

#include <cstdint>

namespace rung::softmax_backward_eigen {

/// Contiguous rows, `*_step` elements apart.
template <class T>
struct Call {
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

/// The module's symbols, all extern "C".
using RunF32 = void(const Call<float>* call);   // rung_softmax_backward_eigen_f32
using RunF64 = void(const Call<double>* call);  // rung_softmax_backward_eigen_f64
using Version = int();  // rung_softmax_backward_eigen_version: 30400 for 3.4.0

}  // namespace rung::softmax_backward_eigen
