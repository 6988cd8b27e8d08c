// SPDX-License-Identifier: Apache-2.0
// cuBLAS's functions with sizes of 64 bits do what those with sizes of int do.
#include <cublas_v2.h>

#include <cstring>
#include <type_traits>

#include "check.cuh"

#define BLAS(call) CHECK((call) == CUBLAS_STATUS_SUCCESS)

using Gemm = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int64_t,
                                int64_t, int64_t, const float*, const float*, int64_t, const float*,
                                int64_t, const float*, float*, int64_t);
static_assert(std::is_same_v<decltype(&cublasSgemm_v2_64), Gemm>);
using Amax = cublasStatus_t (*)(cublasHandle_t, int64_t, const cuComplex*, int64_t, int64_t*);
static_assert(std::is_same_v<decltype(&cublasIcamax_64), Amax>);

template <class T>
void expect_same(Array<T>& one, Array<T>& other) {
  one.down();
  other.down();
  for (int i = 0; i < one.size; ++i) CHECK(std::memcmp(&one[i], &other[i], sizeof(T)) == 0);
}
template <class T>
void fill(Array<T>& array, int salt) {
  for (int i = 0; i < array.size; ++i) array[i] = static_cast<T>((i * 7 + salt) % 11 - 5) / 4;
  array.up();
}

int main() {
  cublasHandle_t handle;
  BLAS(cublasCreate(&handle));
  const int64_t n = 12, apart = n * n;
  const auto plain = CUBLAS_OP_N, turned = CUBLAS_OP_T;
  Array<float> a(2 * n * n), b(2 * n * n), c(2 * n * n), d(2 * n * n);
  fill(a, 1);
  fill(b, 2);
  for (int i = 0; i < n; ++i) a[i * 13] = 8;
  a.up();
  const float alpha = 2, beta = 0;
  float* const c64 = d.device;

  BLAS(cublasSgemm(handle, plain, turned, 5, 6, 7, &alpha, a.device, 12, b.device, 12, &beta,
                   c.device, 12));
  BLAS(cublasSgemm_64(handle, plain, turned, 5, 6, 7, &alpha, a.device, n, b.device, n, &beta, c64,
                      n));
  expect_same(c, d);
  BLAS(cublasSgemmStridedBatched(handle, plain, plain, 12, 12, 12, &alpha, a.device, 12, apart,
                                 b.device, 12, apart, &beta, c.device, 12, apart, 2));
  BLAS(cublasGemmStridedBatchedEx_64(handle, plain, plain, n, n, n, &alpha, a.device, CUDA_R_32F, n,
                                     apart, b.device, CUDA_R_32F, n, apart, &beta, c64, CUDA_R_32F,
                                     n, apart, int64_t{2}, CUBLAS_COMPUTE_32F,
                                     CUBLAS_GEMM_DEFAULT));
  expect_same(c, d);
  BLAS(cublasSgemv(handle, turned, 12, 9, &alpha, a.device, 12, b.device, 1, &beta, c.device, 2));
  BLAS(cublasSgemv_64(handle, turned, n, 9, &alpha, a.device, n, b.device, 1, &beta, c64, 2));
  BLAS(cublasSger(handle, 12, 9, &alpha, a.device, 1, b.device, -1, c.device, 12));
  BLAS(cublasSger_64(handle, n, 9, &alpha, a.device, 1, b.device, -1, c64, n));
  expect_same(c, d);
  BLAS(cublasStrsm(handle, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, plain, CUBLAS_DIAG_NON_UNIT,
                   12, 12, &alpha, a.device, 12, c.device, 12));
  BLAS(cublasStrsm_64(handle, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, plain, CUBLAS_DIAG_NON_UNIT,
                      n, n, &alpha, a.device, n, c64, n));
  BLAS(cublasSaxpy(handle, 40, &alpha, a.device, 2, c.device, 1));
  BLAS(cublasSaxpy_64(handle, int64_t{40}, &alpha, a.device, 2, c64, 1));
  expect_same(c, d);

  int narrow = 0;
  int64_t index = -1;
  BLAS(cublasIsamax(handle, 100, b.device, 1, &narrow));
  BLAS(cublasIsamax_64(handle, 100, b.device, 1, &index));
  CHECK(index == narrow && index > 0);
  Array<int64_t> found(1);
  BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE));
  BLAS(cublasIsamin_64(handle, 100, b.device, 1, found.device));
  BLAS(cublasIsamin(handle, 100, b.device, 1, reinterpret_cast<int*>(c.device)));
  BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));
  found.down();
  BLAS(cublasGetVector_64(1, sizeof(int), c.device, 1, &narrow, 1));
  CHECK(found[0] == narrow && narrow > 0);

  Array<cuComplex> z(8), w(8);
  for (int i = 0; i < 8; ++i) z[i] = make_cuComplex(i, -i);
  BLAS(cublasSetMatrix_64(2, 4, sizeof(cuComplex), z.host, 2, z.device, 2));
  BLAS(cublasSetVector(8, sizeof(cuComplex), z.host, 1, w.device, 1));
  BLAS(cublasCsscal(handle, 8, &alpha, w.device, 1));
  BLAS(cublasCsscal_64(handle, 8, &alpha, z.device, 1));
  expect_same(z, w);
  CHECK(z[3].x == 6 && z[3].y == -6);
  CHECK(cublasScopy_64(nullptr, 1, a.device, 1, c64, 1) == CUBLAS_STATUS_NOT_INITIALIZED);
  CHECK(cublasSgemm_64(handle, plain, plain, n, n, n, &alpha, a.device, n - 1, b.device, n, &beta,
                       c64, n) == CUBLAS_STATUS_INVALID_VALUE);
  BLAS(cublasDestroy(handle));
  return ok();
}
