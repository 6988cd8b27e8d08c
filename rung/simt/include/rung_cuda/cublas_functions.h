// SPDX-License-Identifier: Apache-2.0
// cuBLAS: the functions of vectors and matrices that are part of rung. Matrices are column-major:
// element (i, j) of A is a[i + j * lda]. L is the letter of the type T, R the real type of T.
#pragma once

#include "rung_cuda/cublas_types.h"

#define RUNG_CUBLAS_REAL_TYPES(X) X(S, float) X(D, double)
#define RUNG_CUBLAS_COMPLEX_TYPES(X) X(C, cuComplex) X(Z, cuDoubleComplex)
#define RUNG_CUBLAS_TYPES(X) RUNG_CUBLAS_REAL_TYPES(X) RUNG_CUBLAS_COMPLEX_TYPES(X)
/// Functions whose names hold the letters of the type and of its real type: Scnrm2.
#define RUNG_CUBLAS_NORMS(X) \
  X(S, s, float, float)      \
  X(D, d, double, double) X(Sc, c, cuComplex, float) X(Dz, z, cuDoubleComplex, double)

/// y = alpha x + y, x = alpha x, copies, exchanges.
#define RUNG_CUBLAS_VECTORS(L, T)                                                              \
  cublasStatus_t cublas##L##axpy(cublasHandle_t, int n, const T* alpha, const T* x, int incx,  \
                                 T* y, int incy);                                              \
  cublasStatus_t cublas##L##scal(cublasHandle_t, int n, const T* alpha, T* x, int incx);       \
  cublasStatus_t cublas##L##copy(cublasHandle_t, int n, const T* x, int incx, T* y, int incy); \
  cublasStatus_t cublas##L##swap(cublasHandle_t, int n, T* x, int incx, T* y, int incy);
/// Sums over vectors. The index that Iamax and Iamin find counts from 1.
#define RUNG_CUBLAS_SUMS(L, l, T, R)                                                         \
  cublasStatus_t cublas##L##nrm2(cublasHandle_t, int n, const T* x, int incx, R* result);    \
  cublasStatus_t cublas##L##asum(cublasHandle_t, int n, const T* x, int incx, R* result);    \
  cublasStatus_t cublasI##l##amax(cublasHandle_t, int n, const T* x, int incx, int* result); \
  cublasStatus_t cublasI##l##amin(cublasHandle_t, int n, const T* x, int incx, int* result);
#define RUNG_CUBLAS_DOT(name, T) \
  cublasStatus_t name(cublasHandle_t, int n, const T* x, int incx, const T* y, int incy, T* result);
#define RUNG_CUBLAS_ROT(L, T)                                                                      \
  cublasStatus_t cublas##L##rot(cublasHandle_t, int n, T* x, int incx, T* y, int incy, const T* c, \
                                const T* s);
/// A = alpha x y' + A.
#define RUNG_CUBLAS_GER(name, T)                                                          \
  cublasStatus_t name(cublasHandle_t, int m, int n, const T* alpha, const T* x, int incx, \
                      const T* y, int incy, T* a, int lda);
/// y = alpha op(A) x + beta y, of general and symmetric matrices; op(A) x = b.
#define RUNG_CUBLAS_MATRIX_VECTOR(L, T)                                                           \
  cublasStatus_t cublas##L##gemv(cublasHandle_t, cublasOperation_t, int m, int n, const T* alpha, \
                                 const T* a, int lda, const T* x, int incx, const T* beta, T* y,  \
                                 int incy);                                                       \
  cublasStatus_t cublas##L##symv(cublasHandle_t, cublasFillMode_t, int n, const T* alpha,         \
                                 const T* a, int lda, const T* x, int incx, const T* beta, T* y,  \
                                 int incy);                                                       \
  cublasStatus_t cublas##L##trsv(cublasHandle_t, cublasFillMode_t, cublasOperation_t,             \
                                 cublasDiagType_t, int n, const T* a, int lda, T* x, int incx);
/// C = alpha op(A) op(B) + beta C, of one matrix or many.
#define RUNG_CUBLAS_GEMM(L, T)                                                                   \
  cublasStatus_t cublas##L##gemm(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m,    \
                                 int n, int k, const T* alpha, const T* a, int lda, const T* b,  \
                                 int ldb, const T* beta, T* c, int ldc);                         \
  cublasStatus_t cublas##L##gemmBatched(cublasHandle_t, cublasOperation_t, cublasOperation_t,    \
                                        int m, int n, int k, const T* alpha, const T* const a[], \
                                        int lda, const T* const b[], int ldb, const T* beta,     \
                                        T* const c[], int ldc, int batches);                     \
  cublasStatus_t cublas##L##gemmStridedBatched(                                                  \
      cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n, int k, const T* alpha, \
      const T* a, int lda, long long stride_a, const T* b, int ldb, long long stride_b,          \
      const T* beta, T* c, int ldc, long long stride_c, int batches);
/// C = alpha op(A) + beta op(B); C = diag(x) A or A diag(x); C = alpha op(A) op(A)' + beta C in a
/// triangle; op(A) X = alpha B or X op(A) = alpha B, X over B; C = alpha op(A) B or alpha B op(A).
#define RUNG_CUBLAS_MATRICES(L, T)                                                                \
  cublasStatus_t cublas##L##geam(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m,     \
                                 int n, const T* alpha, const T* a, int lda, const T* beta,       \
                                 const T* b, int ldb, T* c, int ldc);                             \
  cublasStatus_t cublas##L##dgmm(cublasHandle_t, cublasSideMode_t, int m, int n, const T* a,      \
                                 int lda, const T* x, int incx, T* c, int ldc);                   \
  cublasStatus_t cublas##L##syrk(cublasHandle_t, cublasFillMode_t, cublasOperation_t, int n,      \
                                 int k, const T* alpha, const T* a, int lda, const T* beta, T* c, \
                                 int ldc);                                                        \
  cublasStatus_t cublas##L##trsm(cublasHandle_t, cublasSideMode_t, cublasFillMode_t,              \
                                 cublasOperation_t, cublasDiagType_t, int m, int n,               \
                                 const T* alpha, const T* a, int lda, T* b, int ldb);             \
  cublasStatus_t cublas##L##trmm(                                                                 \
      cublasHandle_t, cublasSideMode_t, cublasFillMode_t, cublasOperation_t, cublasDiagType_t,    \
      int m, int n, const T* alpha, const T* a, int lda, const T* b, int ldb, T* c, int ldc);

extern "C" {
RUNG_CUBLAS_TYPES(RUNG_CUBLAS_VECTORS)
RUNG_CUBLAS_NORMS(RUNG_CUBLAS_SUMS)
RUNG_CUBLAS_DOT(cublasSdot, float)
RUNG_CUBLAS_DOT(cublasDdot, double)
RUNG_CUBLAS_DOT(cublasCdotu, cuComplex)
RUNG_CUBLAS_DOT(cublasCdotc, cuComplex)
RUNG_CUBLAS_DOT(cublasZdotu, cuDoubleComplex)
RUNG_CUBLAS_DOT(cublasZdotc, cuDoubleComplex)
RUNG_CUBLAS_REAL_TYPES(RUNG_CUBLAS_ROT)
cublasStatus_t cublasCsscal(cublasHandle_t, int n, const float* alpha, cuComplex* x, int incx);
cublasStatus_t cublasZdscal(cublasHandle_t, int n, const double* alpha, cuDoubleComplex* x,
                            int incx);
RUNG_CUBLAS_GER(cublasSger, float)
RUNG_CUBLAS_GER(cublasDger, double)
RUNG_CUBLAS_GER(cublasCgeru, cuComplex)
RUNG_CUBLAS_GER(cublasCgerc, cuComplex)
RUNG_CUBLAS_GER(cublasZgeru, cuDoubleComplex)
RUNG_CUBLAS_GER(cublasZgerc, cuDoubleComplex)
RUNG_CUBLAS_TYPES(RUNG_CUBLAS_MATRIX_VECTOR)
RUNG_CUBLAS_TYPES(RUNG_CUBLAS_GEMM)
RUNG_CUBLAS_GEMM(H, __half)
RUNG_CUBLAS_TYPES(RUNG_CUBLAS_MATRICES)

// Products of matrices whose types are told by number; the scalars are of the type of the sums.
cublasStatus_t cublasGemmEx(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n,
                            int k, const void* alpha, const void* a, cudaDataType type_a, int lda,
                            const void* b, cudaDataType type_b, int ldb, const void* beta, void* c,
                            cudaDataType type_c, int ldc, cublasComputeType_t, cublasGemmAlgo_t);
cublasStatus_t cublasSgemmEx(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n,
                             int k, const float* alpha, const void* a, cudaDataType type_a, int lda,
                             const void* b, cudaDataType type_b, int ldb, const float* beta,
                             void* c, cudaDataType type_c, int ldc);
cublasStatus_t cublasGemmBatchedEx(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m,
                                   int n, int k, const void* alpha, const void* const a[],
                                   cudaDataType type_a, int lda, const void* const b[],
                                   cudaDataType type_b, int ldb, const void* beta, void* const c[],
                                   cudaDataType type_c, int ldc, int batches, cublasComputeType_t,
                                   cublasGemmAlgo_t);
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t, cublasOperation_t, cublasOperation_t,
                                          int m, int n, int k, const void* alpha, const void* a,
                                          cudaDataType type_a, int lda, long long stride_a,
                                          const void* b, cudaDataType type_b, int ldb,
                                          long long stride_b, const void* beta, void* c,
                                          cudaDataType type_c, int ldc, long long stride_c,
                                          int batches, cublasComputeType_t, cublasGemmAlgo_t);
}

// The forms of before CUDA 11, in which a type of data stands for the sums'.
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
