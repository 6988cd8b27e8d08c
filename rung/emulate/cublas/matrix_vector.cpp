// SPDX-License-Identifier: Apache-2.0
// cuBLAS level 2: matrix-vector operations. Each thread computes one element, or solves one system
// of equations.
#include "rung/emulate/cublas/call.hpp"
#include "rung/emulate/cublas/triangle.hpp"

namespace rung::cublas {
namespace {

/// Computes y = alpha A x + beta y, where at(i, j) returns an element of A (rows x columns).
template <class T, class At>
cublasStatus_t times_vector(const CublasCall& call, long long rows, long long columns,
                            const Scalar<T>& alpha, const Vector<const T>& x, const Scalar<T>& beta,
                            const Vector<T>& y, const At& at) {
  return for_each(call, rows, [=](long long i) {
    T sum{};
    const T a = alpha.get(), b = beta.get();
    if (!Scalar<T>::is_zero(a)) {
      for (long long j = 0; j < columns; ++j) sum = sum + at(i, j) * x[j];
    }
    y[i] = Scalar<T>::is_zero(b) ? a * sum : a * sum + b * y[i];
  });
}

template <class T>
cublasStatus_t gemv(const CublasCall& call, cublasOperation_t op, long long m, long long n,
                    const T* alpha, const T* a, long long lda, const T* x, long long incx,
                    const T* beta, T* y, long long incy) {
  if (!call.has_handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!valid(op) || m < 0 || n < 0 || lda < m || lda < 1 || incx == 0 || incy == 0 ||
      alpha == nullptr || beta == nullptr) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  const long long rows = op == CUBLAS_OP_N ? m : n, columns = op == CUBLAS_OP_N ? n : m;
  if (!fits_pointer_mode(call, "alpha", alpha, sizeof(T)) ||
      !fits_pointer_mode(call, "beta", beta, sizeof(T)) ||
      !accessible(call, {matrix_operand("A", a, m, n, lda), vector_operand("x", x, columns, incx),
                         vector_operand("y", y, rows, incy, true)})) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  const Matrix<T> matrix(a, lda, op);
  return times_vector(call, rows, columns, scalar(call, alpha), Vector<const T>(x, columns, incx),
                      scalar(call, beta), Vector<T>(y, rows, incy),
                      [=](long long i, long long j) { return matrix.at(i, j); });
}

template <class T>
cublasStatus_t symv(const CublasCall& call, cublasFillMode_t fill, long long n, const T* alpha,
                    const T* a, long long lda, const T* x, long long incx, const T* beta, T* y,
                    long long incy) {
  if (!call.has_handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (n < 0 || lda < n || lda < 1 || incx == 0 || incy == 0 || alpha == nullptr ||
      beta == nullptr) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (n == 0) return CUBLAS_STATUS_SUCCESS;
  if (!fits_pointer_mode(call, "alpha", alpha, sizeof(T)) ||
      !fits_pointer_mode(call, "beta", beta, sizeof(T)) ||
      !accessible(call, {matrix_operand("A", a, n, n, lda), vector_operand("x", x, n, incx),
                         vector_operand("y", y, n, incy, true)})) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  const bool lower = fill == CUBLAS_FILL_MODE_LOWER;
  const auto at = [=](long long i, long long j) {
    return (i >= j) == lower ? a[i + j * lda] : a[j + i * lda];
  };
  return times_vector(call, n, n, scalar(call, alpha), Vector<const T>(x, n, incx),
                      scalar(call, beta), Vector<T>(y, n, incy), at);
}

template <class T>
cublasStatus_t ger(const CublasCall& call, long long m, long long n, const T* alpha, const T* x,
                   long long incx, const T* y, long long incy, T* a, long long lda,
                   bool conjugate = false) {
  if (!call.has_handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (m < 0 || n < 0 || lda < m || lda < 1 || incx == 0 || incy == 0 || alpha == nullptr) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  if (!fits_pointer_mode(call, "alpha", alpha, sizeof(T)) ||
      !accessible(call, {vector_operand("x", x, m, incx), vector_operand("y", y, n, incy),
                         matrix_operand("A", a, m, n, lda, true)})) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  const Vector<const T> left(x, m, incx), right(y, n, incy);
  return for_each(call, m, n, [=, factor = scalar(call, alpha)](long long i, long long j) {
    T& to = a[i + j * lda];
    to = factor.get() * left[i] * conjugate_if(conjugate, right[j]) + to;
  });
}

template <class T>
cublasStatus_t trsv(const CublasCall& call, cublasFillMode_t fill, cublasOperation_t op,
                    cublasDiagType_t diagonal, long long n, const T* a, long long lda, T* x,
                    long long incx) {
  if (!call.has_handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!valid(op) || n < 0 || lda < n || lda < 1 || incx == 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (!accessible(call,
                  {matrix_operand("A", a, n, n, lda), vector_operand("x", x, n, incx, true)})) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  const Triangle<T> triangle(a, lda, op, fill, diagonal);
  const Vector<T> to(x, n, incx);
  return for_each(call, n == 0 ? 0 : 1, [=](long long) { triangle.solve(n, to); });
}

}  // namespace
}  // namespace rung::cublas

namespace blas = rung::cublas;

#define RUNG_CUBLAS_MATRIX_VECTOR_OF(L, T, Int, bits)                                              \
  cublasStatus_t cublas##L##gemv##bits(cublasHandle_t handle, cublasOperation_t op, Int m, Int n,  \
                                       const T* alpha, const T* a, Int lda, const T* x, Int incx,  \
                                       const T* beta, T* y, Int incy) {                            \
    return blas::gemv(RUNG_CUBLAS_CALL("cublas" #L "gemv" #bits, handle), op, m, n, alpha, a, lda, \
                      x, incx, beta, y, incy);                                                     \
  }                                                                                                \
  cublasStatus_t cublas##L##symv##bits(cublasHandle_t handle, cublasFillMode_t fill, Int n,        \
                                       const T* alpha, const T* a, Int lda, const T* x, Int incx,  \
                                       const T* beta, T* y, Int incy) {                            \
    return blas::symv(RUNG_CUBLAS_CALL("cublas" #L "symv" #bits, handle), fill, n, alpha, a, lda,  \
                      x, incx, beta, y, incy);                                                     \
  }                                                                                                \
  cublasStatus_t cublas##L##trsv##bits(cublasHandle_t handle, cublasFillMode_t fill,               \
                                       cublasOperation_t op, cublasDiagType_t diagonal, Int n,     \
                                       const T* a, Int lda, T* x, Int incx) {                      \
    return blas::trsv(RUNG_CUBLAS_CALL("cublas" #L "trsv" #bits, handle), fill, op, diagonal, n,   \
                      a, lda, x, incx);                                                            \
  }
RUNG_CUBLAS_TYPES(RUNG_CUBLAS_MATRIX_VECTOR_OF)

#define RUNG_CUBLAS_GER_OF(name, Int, T, conjugate)                                              \
  cublasStatus_t name(cublasHandle_t handle, Int m, Int n, const T* alpha, const T* x, Int incx, \
                      const T* y, Int incy, T* a, Int lda) {                                     \
    return blas::ger(RUNG_CUBLAS_CALL(#name, handle), m, n, alpha, x, incx, y, incy, a, lda,     \
                     conjugate);                                                                 \
  }
RUNG_CUBLAS_BOTH(RUNG_CUBLAS_GER_OF, cublasSger, float, false)
RUNG_CUBLAS_BOTH(RUNG_CUBLAS_GER_OF, cublasDger, double, false)
RUNG_CUBLAS_BOTH(RUNG_CUBLAS_GER_OF, cublasCgeru, cuComplex, false)
RUNG_CUBLAS_BOTH(RUNG_CUBLAS_GER_OF, cublasCgerc, cuComplex, true)
RUNG_CUBLAS_BOTH(RUNG_CUBLAS_GER_OF, cublasZgeru, cuDoubleComplex, false)
RUNG_CUBLAS_BOTH(RUNG_CUBLAS_GER_OF, cublasZgerc, cuDoubleComplex, true)
