// SPDX-License-Identifier: Apache-2.0
// A triangular op(A): solve and product for one vector, by one thread.
#pragma once

#include "rung/emulate/cublas/call.hpp"

namespace rung::cublas {

template <class T>
struct Triangle {
  Matrix<T> matrix;
  bool lower, unit;  // lower: lower triangle of op(A); unit: unit diagonal

  Triangle(const T* a, long long ld, cublasOperation_t op, cublasFillMode_t fill,
           cublasDiagType_t diagonal)
      : matrix(a, ld, op),
        lower((fill == CUBLAS_FILL_MODE_LOWER) == (op == CUBLAS_OP_N)),
        unit(diagonal == CUBLAS_DIAG_UNIT) {}

  /// Returns the transpose of op(A).
  [[nodiscard]] Triangle transposed() const {
    Triangle other = *this;
    other.matrix.row = matrix.column;
    other.matrix.column = matrix.row;
    other.lower = !lower;
    return other;
  }

  /// Solves op(A) x = b in place; x contains b on entry.
  void solve(long long n, const Vector<T>& x) const {
    for (long long step = 0; step < n; ++step) {
      const long long i = lower ? step : n - 1 - step;
      T value = x[i];
      for (long long j = lower ? 0 : i + 1; j < (lower ? i : n); ++j) {
        value = value - matrix.at(i, j) * x[j];
      }
      x[i] = unit ? value : value / matrix.at(i, i);
    }
  }

  /// Computes y = alpha op(A) x. y may alias x: each element is read before it is overwritten.
  void multiply(long long n, T alpha, const Vector<const T>& x, const Vector<T>& y) const {
    for (long long step = 0; step < n; ++step) {
      const long long i = lower ? n - 1 - step : step;
      T sum = unit ? x[i] : matrix.at(i, i) * x[i];
      for (long long j = lower ? 0 : i + 1; j < (lower ? i : n); ++j) {
        sum = sum + matrix.at(i, j) * x[j];
      }
      y[i] = alpha * sum;
    }
  }
};

}  // namespace rung::cublas
