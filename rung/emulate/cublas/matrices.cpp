// SPDX-License-Identifier: Apache-2.0
// cuBLAS level 3, except general products. Each thread computes one element or, if elements depend
// on each other, one column or row.
#include "rung/emulate/cublas/call.hpp"
#include "rung/emulate/cublas/triangle.hpp"

namespace rung::cublas {
namespace {

template <class T>
cublasStatus_t geam(const CublasCall& call, cublasOperation_t op_a, cublasOperation_t op_b,
                    long long m, long long n, const T* alpha, const T* a, long long lda,
                    const T* beta, const T* b, long long ldb, T* c, long long ldc) {
  if (!call.has_handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!valid(op_a) || !valid(op_b) || m < 0 || n < 0 || alpha == nullptr || beta == nullptr) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const long long rows_a = op_a == CUBLAS_OP_N ? m : n, rows_b = op_b == CUBLAS_OP_N ? m : n;
  if (!fits_pointer_mode(call, "alpha", alpha, sizeof(T)) ||
      !fits_pointer_mode(call, "beta", beta, sizeof(T))) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  const Scalar<T> of_a = scalar(call, alpha), of_b = scalar(call, beta);
  if ((!of_a.zero() && lda < rows_a) || (!of_b.zero() && ldb < rows_b) || ldc < m) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const auto operand = [&](const char* name, const T* data, long long rows, long long ld,
                           bool zero) {
    return matrix_operand(name, data, zero ? 0 : rows, m + n - rows, ld);
  };
  if (!accessible(call, {operand("A", a, rows_a, lda, of_a.zero()),
                         operand("B", b, rows_b, ldb, of_b.zero()),
                         matrix_operand("C", c, m, n, ldc, true)})) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  const Matrix<T> first(a, lda, op_a), second(b, ldb, op_b);
  return for_each(call, m, n, [=](long long i, long long j) {
    const T p = of_a.get(), q = of_b.get();
    T sum{};
    if (!Scalar<T>::is_zero(p)) sum = p * first.at(i, j);
    if (!Scalar<T>::is_zero(q)) sum = sum + q * second.at(i, j);
    c[i + j * ldc] = sum;
  });
}

template <class T>
cublasStatus_t dgmm(const CublasCall& call, cublasSideMode_t side, long long m, long long n,
                    const T* a, long long lda, const T* x, long long incx, T* c, long long ldc) {
  if (!call.has_handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (m < 0 || n < 0 || lda < m || ldc < m) return CUBLAS_STATUS_INVALID_VALUE;
  const bool left = side == CUBLAS_SIDE_LEFT;
  if (!accessible(call,
                  {matrix_operand("A", a, m, n, lda), vector_operand("x", x, left ? m : n, incx),
                   matrix_operand("C", c, m, n, ldc, true)})) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  const Vector<const T> diagonal(x, left ? m : n, incx);
  return for_each(call, m, n, [=](long long i, long long j) {
    c[i + j * ldc] = diagonal[left ? i : j] * a[i + j * lda];
  });
}

template <class T>
cublasStatus_t syrk(const CublasCall& call, cublasFillMode_t fill, cublasOperation_t op,
                    long long n, long long k, const T* alpha, const T* a, long long lda,
                    const T* beta, T* c, long long ldc) {
  if (!call.has_handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  const long long rows = op == CUBLAS_OP_N ? n : k;
  if (!valid(op) || n < 0 || k < 0 || lda < rows || ldc < n || alpha == nullptr ||
      beta == nullptr) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (!fits_pointer_mode(call, "alpha", alpha, sizeof(T)) ||
      !fits_pointer_mode(call, "beta", beta, sizeof(T)) ||
      !accessible(call, {matrix_operand("A", a, rows, n + k - rows, lda),
                         matrix_operand("C", c, n, n, ldc, true)})) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  const bool lower = fill == CUBLAS_FILL_MODE_LOWER;
  const Matrix<T> matrix(a, lda, op == CUBLAS_OP_N ? CUBLAS_OP_N : CUBLAS_OP_T);
  const Scalar<T> of_product = scalar(call, alpha), of_c = scalar(call, beta);
  return for_each(call, n, n, [=](long long i, long long j) {
    if (i != j && (i > j) != lower) return;
    T sum{};
    for (long long l = 0; l < k; ++l) sum = sum + matrix.at(i, l) * matrix.at(j, l);
    const T b = of_c.get();
    T& to = c[i + j * ldc];
    to = Scalar<T>::is_zero(b) ? of_product.get() * sum : of_product.get() * sum + b * to;
  });
}

/// Validates the arguments of trsm and trmm, in which op(A) is to the left or right of B.
template <class T>
cublasStatus_t check_triangle(const CublasCall& call, cublasSideMode_t side, cublasOperation_t op,
                              long long m, long long n, const T* alpha, const T* a, long long lda,
                              const T* b, long long ldb, T* c, long long ldc) {
  if (!call.has_handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  const long long order = side == CUBLAS_SIDE_LEFT ? m : n;
  if (!valid(op) || m < 0 || n < 0 || lda < order || ldb < m || ldc < m || alpha == nullptr) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const bool fine = fits_pointer_mode(call, "alpha", alpha, sizeof(T)) &&
                    accessible(call, {matrix_operand("A", a, order, order, lda),
                                      matrix_operand("B", b, m, n, ldb, b == c),
                                      matrix_operand("C", c, m, n, ldc, true)});
  return fine ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

/// Returns column `i` of a matrix or, if not `column`, row `i`.
template <class T>
Vector<T> line(T* matrix, long long ld, bool column, long long i) {
  return column ? Vector<T>(matrix + i * ld, 1, 1) : Vector<T>(matrix + i, 1, ld);
}

template <class T>
cublasStatus_t trsm(const CublasCall& call, cublasSideMode_t side, cublasFillMode_t fill,
                    cublasOperation_t op, cublasDiagType_t diagonal, long long m, long long n,
                    const T* alpha, const T* a, long long lda, T* b, long long ldb) {
  const cublasStatus_t status = check_triangle(call, side, op, m, n, alpha, a, lda, b, ldb, b, ldb);
  if (status != CUBLAS_STATUS_SUCCESS || m == 0 || n == 0) return status;
  // Solves X op(A) = B as op(A)' X' = B'; the columns of B' are the rows of B.
  const bool left = side == CUBLAS_SIDE_LEFT;
  const Triangle<T> given(a, lda, op, fill, diagonal);
  const Triangle<T> triangle = left ? given : given.transposed();
  const long long order = left ? m : n;
  return for_each(call, m + n - order, [=, factor = scalar(call, alpha)](long long i) {
    const Vector<T> x = line(b, ldb, left, i);
    const T scale = factor.get();
    for (long long j = 0; j < order; ++j) x[j] = scale * x[j];
    triangle.solve(order, x);
  });
}

template <class T>
cublasStatus_t trmm(const CublasCall& call, cublasSideMode_t side, cublasFillMode_t fill,
                    cublasOperation_t op, cublasDiagType_t diagonal, long long m, long long n,
                    const T* alpha, const T* a, long long lda, const T* b, long long ldb, T* c,
                    long long ldc) {
  const cublasStatus_t status = check_triangle(call, side, op, m, n, alpha, a, lda, b, ldb, c, ldc);
  if (status != CUBLAS_STATUS_SUCCESS || m == 0 || n == 0) return status;
  const bool left = side == CUBLAS_SIDE_LEFT;
  const Triangle<T> given(a, lda, op, fill, diagonal);
  const Triangle<T> triangle = left ? given : given.transposed();
  const long long order = left ? m : n;
  return for_each(call, m + n - order, [=, factor = scalar(call, alpha)](long long i) {
    triangle.multiply(order, factor.get(), line(b, ldb, left, i), line(c, ldc, left, i));
  });
}

}  // namespace
}  // namespace rung::cublas

namespace blas = rung::cublas;

#define RUNG_CUBLAS_MATRICES_OF(L, T, Int, bits)                                                   \
  cublasStatus_t cublas##L##geam##bits(                                                            \
      cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, Int m, Int n,         \
      const T* alpha, const T* a, Int lda, const T* beta, const T* b, Int ldb, T* c, Int ldc) {    \
    return blas::geam(RUNG_CUBLAS_CALL("cublas" #L "geam" #bits, handle), op_a, op_b, m, n, alpha, \
                      a, lda, beta, b, ldb, c, ldc);                                               \
  }                                                                                                \
  cublasStatus_t cublas##L##dgmm##bits(cublasHandle_t handle, cublasSideMode_t side, Int m, Int n, \
                                       const T* a, Int lda, const T* x, Int incx, T* c, Int ldc) { \
    return blas::dgmm(RUNG_CUBLAS_CALL("cublas" #L "dgmm" #bits, handle), side, m, n, a, lda, x,   \
                      incx, c, ldc);                                                               \
  }                                                                                                \
  cublasStatus_t cublas##L##syrk##bits(cublasHandle_t handle, cublasFillMode_t fill,               \
                                       cublasOperation_t op, Int n, Int k, const T* alpha,         \
                                       const T* a, Int lda, const T* beta, T* c, Int ldc) {        \
    return blas::syrk(RUNG_CUBLAS_CALL("cublas" #L "syrk" #bits, handle), fill, op, n, k, alpha,   \
                      a, lda, beta, c, ldc);                                                       \
  }                                                                                                \
  cublasStatus_t cublas##L##trsm##bits(cublasHandle_t handle, cublasSideMode_t side,               \
                                       cublasFillMode_t fill, cublasOperation_t op,                \
                                       cublasDiagType_t diagonal, Int m, Int n, const T* alpha,    \
                                       const T* a, Int lda, T* b, Int ldb) {                       \
    return blas::trsm(RUNG_CUBLAS_CALL("cublas" #L "trsm" #bits, handle), side, fill, op,          \
                      diagonal, m, n, alpha, a, lda, b, ldb);                                      \
  }                                                                                                \
  cublasStatus_t cublas##L##trmm##bits(cublasHandle_t handle, cublasSideMode_t side,               \
                                       cublasFillMode_t fill, cublasOperation_t op,                \
                                       cublasDiagType_t diagonal, Int m, Int n, const T* alpha,    \
                                       const T* a, Int lda, const T* b, Int ldb, T* c, Int ldc) {  \
    return blas::trmm(RUNG_CUBLAS_CALL("cublas" #L "trmm" #bits, handle), side, fill, op,          \
                      diagonal, m, n, alpha, a, lda, b, ldb, c, ldc);                              \
  }
RUNG_CUBLAS_TYPES(RUNG_CUBLAS_MATRICES_OF)
