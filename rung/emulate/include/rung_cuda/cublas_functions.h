// SPDX-License-Identifier: Apache-2.0
// cuBLAS functions that rung implements. Matrices are column-major: element (i, j) of A is a[i + j
// * lda]. L is the letter of the type T, R the corresponding real type.
#pragma once

#include "rung_cuda/cublas_types.h"

// Each function exists with int sizes and, as name_64, with int64_t sizes. Int: size type; `bits`:
// suffix.
#define RUNG_CUBLAS_REAL_TYPES(X) \
  X(S, float, int, )              \
  X(D, double, int, ) X(S, float, int64_t, _64) X(D, double, int64_t, _64)
#define RUNG_CUBLAS_COMPLEX_TYPES(X) \
  X(C, cuComplex, int, )             \
  X(Z, cuDoubleComplex, int, ) X(C, cuComplex, int64_t, _64) X(Z, cuDoubleComplex, int64_t, _64)
#define RUNG_CUBLAS_TYPES(X) RUNG_CUBLAS_REAL_TYPES(X) RUNG_CUBLAS_COMPLEX_TYPES(X)
/// Functions named by the letters of a type and of its real type, such as Scnrm2.
#define RUNG_CUBLAS_NORMS_OF(X, Int, bits) \
  X(S, s, float, float, Int, bits)         \
  X(D, d, double, double, Int, bits)       \
  X(Sc, c, cuComplex, float, Int, bits) X(Dz, z, cuDoubleComplex, double, Int, bits)
#define RUNG_CUBLAS_NORMS(X) RUNG_CUBLAS_NORMS_OF(X, int, ) RUNG_CUBLAS_NORMS_OF(X, int64_t, _64)
/// Invokes X(name, size type, ...) for the functions with and without the suffix _64.
#define RUNG_CUBLAS_BOTH(X, name, ...) X(name, int, __VA_ARGS__) X(name##_64, int64_t, __VA_ARGS__)

/// Declares axpy, scal, copy and swap.
#define RUNG_CUBLAS_VECTORS(L, T, Int, bits)                                                   \
  cublasStatus_t cublas##L##axpy##bits(cublasHandle_t, Int n, const T* alpha, const T* x,      \
                                       Int incx, T* y, Int incy);                              \
  cublasStatus_t cublas##L##scal##bits(cublasHandle_t, Int n, const T* alpha, T* x, Int incx); \
  cublasStatus_t cublas##L##copy##bits(cublasHandle_t, Int n, const T* x, Int incx, T* y,      \
                                       Int incy);                                              \
  cublasStatus_t cublas##L##swap##bits(cublasHandle_t, Int n, T* x, Int incx, T* y, Int incy);
/// Declares reductions over vectors. Iamax and Iamin return 1-based indices.
#define RUNG_CUBLAS_SUMS(L, l, T, R, Int, bits)                                                    \
  cublasStatus_t cublas##L##nrm2##bits(cublasHandle_t, Int n, const T* x, Int incx, R* result);    \
  cublasStatus_t cublas##L##asum##bits(cublasHandle_t, Int n, const T* x, Int incx, R* result);    \
  cublasStatus_t cublasI##l##amax##bits(cublasHandle_t, Int n, const T* x, Int incx, Int* result); \
  cublasStatus_t cublasI##l##amin##bits(cublasHandle_t, Int n, const T* x, Int incx, Int* result);
#define RUNG_CUBLAS_DOT(name, Int, T) \
  cublasStatus_t name(cublasHandle_t, Int n, const T* x, Int incx, const T* y, Int incy, T* result);
#define RUNG_CUBLAS_ROT(L, T, Int, bits)                                                     \
  cublasStatus_t cublas##L##rot##bits(cublasHandle_t, Int n, T* x, Int incx, T* y, Int incy, \
                                      const T* c, const T* s);
/// Declares ger: A = alpha x y' + A.
#define RUNG_CUBLAS_GER(name, Int, T)                                                     \
  cublasStatus_t name(cublasHandle_t, Int m, Int n, const T* alpha, const T* x, Int incx, \
                      const T* y, Int incy, T* a, Int lda);
/// Declares gemv and symv: y = alpha op(A) x + beta y; trsv: solves op(A) x = b.
#define RUNG_CUBLAS_MATRIX_VECTOR(L, T, Int, bits)                                                \
  cublasStatus_t cublas##L##gemv##bits(cublasHandle_t, cublasOperation_t, Int m, Int n,           \
                                       const T* alpha, const T* a, Int lda, const T* x, Int incx, \
                                       const T* beta, T* y, Int incy);                            \
  cublasStatus_t cublas##L##symv##bits(cublasHandle_t, cublasFillMode_t, Int n, const T* alpha,   \
                                       const T* a, Int lda, const T* x, Int incx, const T* beta,  \
                                       T* y, Int incy);                                           \
  cublasStatus_t cublas##L##trsv##bits(cublasHandle_t, cublasFillMode_t, cublasOperation_t,       \
                                       cublasDiagType_t, Int n, const T* a, Int lda, T* x,        \
                                       Int incx);
/// Declares gemm: C = alpha op(A) op(B) + beta C; single and batched.
#define RUNG_CUBLAS_GEMM(L, T, Int, bits)                                                        \
  cublasStatus_t cublas##L##gemm##bits(cublasHandle_t, cublasOperation_t, cublasOperation_t,     \
                                       Int m, Int n, Int k, const T* alpha, const T* a, Int lda, \
                                       const T* b, Int ldb, const T* beta, T* c, Int ldc);       \
  cublasStatus_t cublas##L##gemmBatched##bits(                                                   \
      cublasHandle_t, cublasOperation_t, cublasOperation_t, Int m, Int n, Int k, const T* alpha, \
      const T* const a[], Int lda, const T* const b[], Int ldb, const T* beta, T* const c[],     \
      Int ldc, Int batches);                                                                     \
  cublasStatus_t cublas##L##gemmStridedBatched##bits(                                            \
      cublasHandle_t, cublasOperation_t, cublasOperation_t, Int m, Int n, Int k, const T* alpha, \
      const T* a, Int lda, long long stride_a, const T* b, Int ldb, long long stride_b,          \
      const T* beta, T* c, Int ldc, long long stride_c, Int batches);
/// Declares geam: C = alpha op(A) + beta op(B); dgmm: C = diag(x) A or A diag(x); syrk: C = alpha
/// op(A) op(A)' + beta C in a triangle; trsm: solves op(A) X = alpha B or X op(A) = alpha B, X
/// replaces B; trmm: C = alpha op(A) B or alpha B op(A).
#define RUNG_CUBLAS_MATRICES(L, T, Int, bits)                                                      \
  cublasStatus_t cublas##L##geam##bits(cublasHandle_t, cublasOperation_t, cublasOperation_t,       \
                                       Int m, Int n, const T* alpha, const T* a, Int lda,          \
                                       const T* beta, const T* b, Int ldb, T* c, Int ldc);         \
  cublasStatus_t cublas##L##dgmm##bits(cublasHandle_t, cublasSideMode_t, Int m, Int n, const T* a, \
                                       Int lda, const T* x, Int incx, T* c, Int ldc);              \
  cublasStatus_t cublas##L##syrk##bits(cublasHandle_t, cublasFillMode_t, cublasOperation_t, Int n, \
                                       Int k, const T* alpha, const T* a, Int lda, const T* beta,  \
                                       T* c, Int ldc);                                             \
  cublasStatus_t cublas##L##trsm##bits(cublasHandle_t, cublasSideMode_t, cublasFillMode_t,         \
                                       cublasOperation_t, cublasDiagType_t, Int m, Int n,          \
                                       const T* alpha, const T* a, Int lda, T* b, Int ldb);        \
  cublasStatus_t cublas##L##trmm##bits(                                                            \
      cublasHandle_t, cublasSideMode_t, cublasFillMode_t, cublasOperation_t, cublasDiagType_t,     \
      Int m, Int n, const T* alpha, const T* a, Int lda, const T* b, Int ldb, T* c, Int ldc);
/// Declares functions that scale complex vectors by real factors.
#define RUNG_CUBLAS_BY_REALS(Int, bits)                                                      \
  cublasStatus_t cublasCsscal##bits(cublasHandle_t, Int n, const float* alpha, cuComplex* x, \
                                    Int incx);                                               \
  cublasStatus_t cublasZdscal##bits(cublasHandle_t, Int n, const double* alpha,              \
                                    cuDoubleComplex* x, Int incx);
/// Declares products whose element types are run-time values; scalars have the type of the sums.
#define RUNG_CUBLAS_BY_NUMBER(Int, bits)                                                          \
  cublasStatus_t cublasGemmEx##bits(                                                              \
      cublasHandle_t, cublasOperation_t, cublasOperation_t, Int m, Int n, Int k,                  \
      const void* alpha, const void* a, cudaDataType type_a, Int lda, const void* b,              \
      cudaDataType type_b, Int ldb, const void* beta, void* c, cudaDataType type_c, Int ldc,      \
      cublasComputeType_t, cublasGemmAlgo_t);                                                     \
  cublasStatus_t cublasSgemmEx##bits(                                                             \
      cublasHandle_t, cublasOperation_t, cublasOperation_t, Int m, Int n, Int k,                  \
      const float* alpha, const void* a, cudaDataType type_a, Int lda, const void* b,             \
      cudaDataType type_b, Int ldb, const float* beta, void* c, cudaDataType type_c, Int ldc);    \
  cublasStatus_t cublasGemmBatchedEx##bits(                                                       \
      cublasHandle_t, cublasOperation_t, cublasOperation_t, Int m, Int n, Int k,                  \
      const void* alpha, const void* const a[], cudaDataType type_a, Int lda,                     \
      const void* const b[], cudaDataType type_b, Int ldb, const void* beta, void* const c[],     \
      cudaDataType type_c, Int ldc, Int batches, cublasComputeType_t, cublasGemmAlgo_t);          \
  cublasStatus_t cublasGemmStridedBatchedEx##bits(                                                \
      cublasHandle_t, cublasOperation_t, cublasOperation_t, Int m, Int n, Int k,                  \
      const void* alpha, const void* a, cudaDataType type_a, Int lda, long long stride_a,         \
      const void* b, cudaDataType type_b, Int ldb, long long stride_b, const void* beta, void* c, \
      cudaDataType type_c, Int ldc, long long stride_c, Int batches, cublasComputeType_t,         \
      cublasGemmAlgo_t);

extern "C" {
RUNG_CUBLAS_TYPES(RUNG_CUBLAS_VECTORS)
RUNG_CUBLAS_NORMS(RUNG_CUBLAS_SUMS)
RUNG_CUBLAS_BOTH(RUNG_CUBLAS_DOT, cublasSdot, float)
RUNG_CUBLAS_BOTH(RUNG_CUBLAS_DOT, cublasDdot, double)
RUNG_CUBLAS_BOTH(RUNG_CUBLAS_DOT, cublasCdotu, cuComplex)
RUNG_CUBLAS_BOTH(RUNG_CUBLAS_DOT, cublasCdotc, cuComplex)
RUNG_CUBLAS_BOTH(RUNG_CUBLAS_DOT, cublasZdotu, cuDoubleComplex)
RUNG_CUBLAS_BOTH(RUNG_CUBLAS_DOT, cublasZdotc, cuDoubleComplex)
RUNG_CUBLAS_REAL_TYPES(RUNG_CUBLAS_ROT)
RUNG_CUBLAS_BY_REALS(int, )
RUNG_CUBLAS_BY_REALS(int64_t, _64)
RUNG_CUBLAS_BOTH(RUNG_CUBLAS_GER, cublasSger, float)
RUNG_CUBLAS_BOTH(RUNG_CUBLAS_GER, cublasDger, double)
RUNG_CUBLAS_BOTH(RUNG_CUBLAS_GER, cublasCgeru, cuComplex)
RUNG_CUBLAS_BOTH(RUNG_CUBLAS_GER, cublasCgerc, cuComplex)
RUNG_CUBLAS_BOTH(RUNG_CUBLAS_GER, cublasZgeru, cuDoubleComplex)
RUNG_CUBLAS_BOTH(RUNG_CUBLAS_GER, cublasZgerc, cuDoubleComplex)
RUNG_CUBLAS_TYPES(RUNG_CUBLAS_MATRIX_VECTOR)
RUNG_CUBLAS_TYPES(RUNG_CUBLAS_GEMM)
RUNG_CUBLAS_GEMM(H, __half, int, )
RUNG_CUBLAS_GEMM(H, __half, int64_t, _64)
RUNG_CUBLAS_TYPES(RUNG_CUBLAS_MATRICES)

RUNG_CUBLAS_BY_NUMBER(int, )
RUNG_CUBLAS_BY_NUMBER(int64_t, _64)
}

// Overloads for programs written before CUDA 11, in which a data type denotes the compute type.
namespace rung::cuda {
inline cublasComputeType_t compute_type(cudaDataType sums) {
  switch (sums) {
    case CUDA_R_16F:
      return CUBLAS_COMPUTE_16F;
    case CUDA_R_64F:
    case CUDA_C_64F:
      return CUBLAS_COMPUTE_64F;
    case CUDA_R_32I:
      return CUBLAS_COMPUTE_32I;
    default:
      return CUBLAS_COMPUTE_32F;
  }
}
}  // namespace rung::cuda
inline cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a,
                                   cublasOperation_t op_b, int m, int n, int k, const void* alpha,
                                   const void* a, cudaDataType type_a, int lda, const void* b,
                                   cudaDataType type_b, int ldb, const void* beta, void* c,
                                   cudaDataType type_c, int ldc, cudaDataType sums,
                                   cublasGemmAlgo_t algorithm) {
  return cublasGemmEx(handle, op_a, op_b, m, n, k, alpha, a, type_a, lda, b, type_b, ldb, beta, c,
                      type_c, ldc, rung::cuda::compute_type(sums), algorithm);
}
inline cublasStatus_t cublasGemmBatchedEx(
    cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
    const void* alpha, const void* const a[], cudaDataType type_a, int lda, const void* const b[],
    cudaDataType type_b, int ldb, const void* beta, void* const c[], cudaDataType type_c, int ldc,
    int batches, cudaDataType sums, cublasGemmAlgo_t algorithm) {
  return cublasGemmBatchedEx(handle, op_a, op_b, m, n, k, alpha, a, type_a, lda, b, type_b, ldb,
                             beta, c, type_c, ldc, batches, rung::cuda::compute_type(sums),
                             algorithm);
}
inline cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
    const void* alpha, const void* a, cudaDataType type_a, int lda, long long stride_a,
    const void* b, cudaDataType type_b, int ldb, long long stride_b, const void* beta, void* c,
    cudaDataType type_c, int ldc, long long stride_c, int batches, cudaDataType sums,
    cublasGemmAlgo_t algorithm) {
  return cublasGemmStridedBatchedEx(handle, op_a, op_b, m, n, k, alpha, a, type_a, lda, stride_a, b,
                                    type_b, ldb, stride_b, beta, c, type_c, ldc, stride_c, batches,
                                    rung::cuda::compute_type(sums), algorithm);
}
