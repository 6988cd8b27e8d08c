// SPDX-License-Identifier: Apache-2.0
// C interface of librung_peer_gemm_eigen_*.so, which the gemm peer Eigen loads.
//
// Eigen selects instructions at compile time, and its functions are inline: the linker would merge
// two copies with different flags in one library, and a machine without AVX-512 could execute
// AVX-512 code. Each instruction set is therefore a module of its own with all other names hidden.
#pragma once

#include <cstdint>

namespace rung::peer_eigen {

/// Arguments of C (m x n, contiguous rows) = alpha op(A) op(B) + beta C. A transposed operand has
/// contiguous columns; `leading` is the step between rows (columns), in elements. n = 1 is a
/// matrix-vector product.
template <class T>
struct EigenGemmArguments {
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

/// Exported extern "C" functions of the module; the multiplications return false if Eigen runs out
/// of memory.
using SetThreads = void(int threads);                              // rung_eigen_set_threads
using MultiplyF32 = bool(const EigenGemmArguments<float>* call);   // rung_eigen_f32
using MultiplyF64 = bool(const EigenGemmArguments<double>* call);  // rung_eigen_f64
using Version = int();  // rung_eigen_version: 30400 for 3.4.0

}  // namespace rung::peer_eigen
