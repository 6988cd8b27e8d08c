// SPDX-License-Identifier: Apache-2.0
// The C interface of librung_peer_gemm_eigen_*.so: what the gemm peer Eigen loads.
//
// Eigen chooses its instructions when it is compiled, and its functions are inline: two copies with
// different flags in one library would be merged by the linker, and a machine without AVX-512 would
// run the other's. So each instruction set is a module of its own with all other names hidden.
#pragma once

#include <cstdint>

namespace rung::peer_eigen {

/// C (m x n, contiguous rows) = alpha op(A) op(B) + beta C. A transposed operand has contiguous
/// columns; `leading` is the step from one row (column) to the next. n = 1 is a matrix times a
/// vector.
template <class T>
struct Call {
  std::int64_t m, n, k;
  T alpha, beta;
  const T* a;
  std::int64_t a_leading;
  bool a_transposed;
  const T* b;
  std::int64_t b_leading;
  bool b_transposed;
  T* c;
  std::int64_t c_leading;
};

/// The module's symbols, all extern "C"; multiplication says false when Eigen has no memory left.
using SetThreads = void(int threads);                // rung_eigen_set_threads
using MultiplyF32 = bool(const Call<float>* call);   // rung_eigen_f32
using MultiplyF64 = bool(const Call<double>* call);  // rung_eigen_f64
using Version = int();                               // rung_eigen_version: 30400 for 3.4.0

}  // namespace rung::peer_eigen
