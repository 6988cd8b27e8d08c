// SPDX-License-Identifier: Apache-2.0
// cuBLAS general matrix products: single, strided-batched, and batched with pointer arrays.
#include "rung/emulate/cublas/product.hpp"

namespace rung::cublas {
namespace {

/// A matrix argument of a product.
struct Given {
  const void* data;
  cudaDataType type;
  long long ld;
  long long stride = 0;
};
struct Shape {
  cublasOperation_t op_a, op_b;
  long long m, n, k;
  long long batches = 1;
  bool by_pointers = false;
};

Batched batched(const Given& given, cublasOperation_t op, bool by_pointers) {
  Batched all;
  all.first = given.data;
  all.type = given.type;
  all.row = op == CUBLAS_OP_N ? 1 : given.ld;
  all.column = op == CUBLAS_OP_N ? given.ld : 1;
  all.stride = given.stride;
  all.by_pointers = by_pointers;
  return all;
}

/// Returns the memory of the matrices; for a batch of pointers, the memory of the pointer array.
Operand operand(const char* name, const Given& given, long long rows, long long columns,
                const Shape& shape, bool writes = false) {
  if (shape.by_pointers) {
    const auto pointers = static_cast<long long>(sizeof(void*)) * shape.batches;
    return {name, given.data, rows <= 0 || columns <= 0 ? 0 : pointers};
  }
  const long long one = matrix_extent(rows, columns, given.ld);
  const long long elements = one == 0 ? 0 : one + (shape.batches - 1) * given.stride;
  return {name, given.data, elements * static_cast<long long>(size_of(given.type)), writes};
}

cublasStatus_t gemm(const CublasCall& call, const Shape& shape, const void* alpha, const Given& a,
                    const Given& b, const void* beta, const Given& c, cudaDataType sums) {
  if (!call.has_handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  const bool a_plain = shape.op_a == CUBLAS_OP_N, b_plain = shape.op_b == CUBLAS_OP_N;
  const long long rows_a = a_plain ? shape.m : shape.k, rows_b = b_plain ? shape.k : shape.n;
  if (!valid(shape.op_a) || !valid(shape.op_b) || shape.m < 0 || shape.n < 0 || shape.k < 0 ||
      shape.batches < 0 || a.ld < rows_a || b.ld < rows_b || c.ld < shape.m || a.ld < 1 ||
      b.ld < 1 || c.ld < 1 || alpha == nullptr || beta == nullptr) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (size_of(a.type) == 0 || size_of(b.type) == 0 || size_of(c.type) == 0) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (shape.m == 0 || shape.n == 0 || shape.batches == 0) return CUBLAS_STATUS_SUCCESS;
  Product product{shape.m, shape.n, shape.k, shape.batches};
  product.a = batched(a, shape.op_a, shape.by_pointers);
  product.b = batched(b, shape.op_b, shape.by_pointers);
  product.c = product.d = batched(c, CUBLAS_OP_N, shape.by_pointers);
  product.conjugate_a = shape.op_a == CUBLAS_OP_C;
  product.conjugate_b = shape.op_b == CUBLAS_OP_C;
  product.alpha = {alpha, sums};
  product.beta = {beta, sums};
  if (!supported(product, sums)) return CUBLAS_STATUS_NOT_SUPPORTED;
  const auto scalar_bytes = static_cast<long long>(size_of(sums));
  if (!fits_pointer_mode(call, "alpha", alpha, scalar_bytes) ||
      !fits_pointer_mode(call, "beta", beta, scalar_bytes)) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  const long long k = !call.device_scalars && is_zero(product.alpha) ? 0 : shape.k;
  if (!accessible(call, {operand("A", a, a_plain ? shape.m : k, a_plain ? k : shape.m, shape),
                         operand("B", b, b_plain ? k : shape.n, b_plain ? shape.n : k, shape),
                         operand("C", c, shape.m, shape.n, shape, true)})) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  return multiply(call, product, sums);
}

cublasStatus_t gemm_ex(const CublasCall& call, const Shape& shape, const void* alpha,
                       const Given& a, const Given& b, const void* beta, const Given& c,
                       cublasComputeType_t compute) {
  cudaDataType sums;
  if (!scale_type(compute, c.type, sums)) return CUBLAS_STATUS_INVALID_VALUE;
  return gemm(call, shape, alpha, a, b, beta, c, sums);
}

}  // namespace
}  // namespace rung::cublas

using namespace rung::cublas;  // NOLINT: implementation of cuBLAS

#define RUNG_CUBLAS_GEMM_OF(L, T, type, Int, bits)                                                 \
  cublasStatus_t cublas##L##gemm##bits(                                                            \
      cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, Int m, Int n, Int k,  \
      const T* alpha, const T* a, Int lda, const T* b, Int ldb, const T* beta, T* c, Int ldc) {    \
    return gemm(RUNG_CUBLAS_CALL("cublas" #L "gemm" #bits, handle), {op_a, op_b, m, n, k}, alpha,  \
                {a, type, lda}, {b, type, ldb}, beta, {c, type, ldc}, type);                       \
  }                                                                                                \
  cublasStatus_t cublas##L##gemmBatched##bits(                                                     \
      cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, Int m, Int n, Int k,  \
      const T* alpha, const T* const a[], Int lda, const T* const b[], Int ldb, const T* beta,     \
      T* const c[], Int ldc, Int batches) {                                                        \
    return gemm(RUNG_CUBLAS_CALL("cublas" #L "gemmBatched" #bits, handle),                         \
                {op_a, op_b, m, n, k, batches, true}, alpha, {a, type, lda}, {b, type, ldb}, beta, \
                {c, type, ldc}, type);                                                             \
  }                                                                                                \
  cublasStatus_t cublas##L##gemmStridedBatched##bits(                                              \
      cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, Int m, Int n, Int k,  \
      const T* alpha, const T* a, Int lda, long long stride_a, const T* b, Int ldb,                \
      long long stride_b, const T* beta, T* c, Int ldc, long long stride_c, Int batches) {         \
    return gemm(RUNG_CUBLAS_CALL("cublas" #L "gemmStridedBatched" #bits, handle),                  \
                {op_a, op_b, m, n, k, batches}, alpha, {a, type, lda, stride_a},                   \
                {b, type, ldb, stride_b}, beta, {c, type, ldc, stride_c}, type);                   \
  }
RUNG_CUBLAS_GEMM_OF(S, float, CUDA_R_32F, int, )
RUNG_CUBLAS_GEMM_OF(S, float, CUDA_R_32F, int64_t, _64)
RUNG_CUBLAS_GEMM_OF(D, double, CUDA_R_64F, int, )
RUNG_CUBLAS_GEMM_OF(D, double, CUDA_R_64F, int64_t, _64)
RUNG_CUBLAS_GEMM_OF(C, cuComplex, CUDA_C_32F, int, )
RUNG_CUBLAS_GEMM_OF(C, cuComplex, CUDA_C_32F, int64_t, _64)
RUNG_CUBLAS_GEMM_OF(Z, cuDoubleComplex, CUDA_C_64F, int, )
RUNG_CUBLAS_GEMM_OF(Z, cuDoubleComplex, CUDA_C_64F, int64_t, _64)
RUNG_CUBLAS_GEMM_OF(H, __half, CUDA_R_16F, int, )
RUNG_CUBLAS_GEMM_OF(H, __half, CUDA_R_16F, int64_t, _64)

#define RUNG_CUBLAS_BY_NUMBER_OF(Int, bits)                                                       \
  cublasStatus_t cublasGemmEx##bits(                                                              \
      cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, Int m, Int n, Int k, \
      const void* alpha, const void* a, cudaDataType type_a, Int lda, const void* b,              \
      cudaDataType type_b, Int ldb, const void* beta, void* c, cudaDataType type_c, Int ldc,      \
      cublasComputeType_t compute, cublasGemmAlgo_t) {                                            \
    return gemm_ex(RUNG_CUBLAS_CALL("cublasGemmEx" #bits, handle), {op_a, op_b, m, n, k}, alpha,  \
                   {a, type_a, lda}, {b, type_b, ldb}, beta, {c, type_c, ldc}, compute);          \
  }                                                                                               \
  cublasStatus_t cublasSgemmEx##bits(                                                             \
      cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, Int m, Int n, Int k, \
      const float* alpha, const void* a, cudaDataType type_a, Int lda, const void* b,             \
      cudaDataType type_b, Int ldb, const float* beta, void* c, cudaDataType type_c, Int ldc) {   \
    return gemm(RUNG_CUBLAS_CALL("cublasSgemmEx" #bits, handle), {op_a, op_b, m, n, k}, alpha,    \
                {a, type_a, lda}, {b, type_b, ldb}, beta, {c, type_c, ldc}, CUDA_R_32F);          \
  }                                                                                               \
  cublasStatus_t cublasGemmBatchedEx##bits(                                                       \
      cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, Int m, Int n, Int k, \
      const void* alpha, const void* const a[], cudaDataType type_a, Int lda,                     \
      const void* const b[], cudaDataType type_b, Int ldb, const void* beta, void* const c[],     \
      cudaDataType type_c, Int ldc, Int batches, cublasComputeType_t compute, cublasGemmAlgo_t) { \
    return gemm_ex(RUNG_CUBLAS_CALL("cublasGemmBatchedEx" #bits, handle),                         \
                   {op_a, op_b, m, n, k, batches, true}, alpha, {a, type_a, lda},                 \
                   {b, type_b, ldb}, beta, {c, type_c, ldc}, compute);                            \
  }                                                                                               \
  cublasStatus_t cublasGemmStridedBatchedEx##bits(                                                \
      cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, Int m, Int n, Int k, \
      const void* alpha, const void* a, cudaDataType type_a, Int lda, long long stride_a,         \
      const void* b, cudaDataType type_b, Int ldb, long long stride_b, const void* beta, void* c, \
      cudaDataType type_c, Int ldc, long long stride_c, Int batches, cublasComputeType_t compute, \
      cublasGemmAlgo_t) {                                                                         \
    return gemm_ex(RUNG_CUBLAS_CALL("cublasGemmStridedBatchedEx" #bits, handle),                  \
                   {op_a, op_b, m, n, k, batches}, alpha, {a, type_a, lda, stride_a},             \
                   {b, type_b, ldb, stride_b}, beta, {c, type_c, ldc, stride_c}, compute);        \
  }
RUNG_CUBLAS_BY_NUMBER_OF(int, )
RUNG_CUBLAS_BY_NUMBER_OF(int64_t, _64)
