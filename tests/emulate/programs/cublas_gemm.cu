// SPDX-License-Identifier: Apache-2.0
// cuBLAS's products of matrices against loops on the host: operations, leading dimensions, scalars
// of the host and of the device, strides and pointers between matrices, types by number.
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <vector>

#include "check.cuh"

template <class T>
double number(T value) {
  return static_cast<double>(static_cast<float>(value));
}
double number(double value) { return value; }

/// op(A) op(B) of column-major matrices.
template <class T>
double dot(Array<T>& a, Array<T>& b, int i, int j, int k, int lda, int ldb, bool ta, bool tb,
           int first_a = 0, int first_b = 0) {
  double sum = 0;
  for (int l = 0; l < k; ++l) {
    const T x = a[first_a + (ta ? l + i * lda : i + l * lda)];
    const T y = b[first_b + (tb ? j + l * ldb : l + j * ldb)];
    sum += number(x) * number(y);
  }
  return sum;
}
template <class T>
void fill(Array<T>& array, int n, int salt) {
  for (int i = 0; i < n; ++i)
    array[i] = static_cast<T>(static_cast<float>((i * 7 + salt) % 11 - 5) / 4);
  array.up();
}

template <class T, class Gemm>
void operations(Gemm gemm, double tolerance) {
  const int m = 21, n = 70, k = 13, lda = 75, ldb = 80, ldc = 25;
  for (int ops = 0; ops < 4; ++ops) {
    const bool ta = (ops & 1) != 0, tb = (ops & 2) != 0;
    Array<T> a(lda * 75), b(ldb * 80), c(ldc * n), before(ldc * n);
    fill(a, lda * 75, 1);
    fill(b, ldb * 80, 2);
    fill(c, ldc * n, 3);
    fill(before, ldc * n, 3);
    const T alpha = static_cast<T>(1.5f), beta = static_cast<T>(-0.5f);
    CHECK(gemm(ta ? CUBLAS_OP_T : CUBLAS_OP_N, tb ? CUBLAS_OP_T : CUBLAS_OP_N, m, n, k, &alpha,
               a.device, lda, b.device, ldb, &beta, c.device, ldc) == CUBLAS_STATUS_SUCCESS);
    c.down();
    for (int j = 0; j < n; ++j) {
      for (int i = 0; i < ldc; ++i) {
        double want = number(before[i + j * ldc]);
        if (i < m) want = 1.5 * dot(a, b, i, j, k, lda, ldb, ta, tb) - 0.5 * want;
        CHECK(std::fabs(number(c[i + j * ldc]) - want) <= tolerance);
      }
    }
  }
}

int main() {
  cublasHandle_t handle;
  CHECK(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  operations<float>([=](auto... all) { return cublasSgemm(handle, all...); }, 1e-4);
  operations<double>([=](auto... all) { return cublasDgemm(handle, all...); }, 1e-12);
  operations<__half>([=](auto... all) { return cublasHgemm(handle, all...); }, 0.06);

  // What beta of 0 multiplies may be anything; scalars may be the device's.
  const int n = 5;
  Array<float> a(3 * n * n), b(3 * n * n), c(3 * n * n), scalars(2);
  fill(a, 3 * n * n, 4);
  fill(b, 3 * n * n, 5);
  for (int i = 0; i < 3 * n * n; ++i) c[i] = NAN;
  c.up();
  scalars[0] = 2;
  scalars[1] = 0;
  scalars.up();
  CHECK(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE) == CUBLAS_STATUS_SUCCESS);
  CHECK(cublasSgemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_T, n, n, n, scalars.device,
                                  a.device, n, n * n, b.device, n, n * n, scalars.device + 1,
                                  c.device, n, n * n, 3) == CUBLAS_STATUS_SUCCESS);
  CHECK(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST) == CUBLAS_STATUS_SUCCESS);
  c.down();
  for (int i = 0; i < 3 * n * n; ++i) {
    const int at = i / (n * n) * n * n;
    CHECK(std::fabs(c[i] - 2 * dot(a, b, i % n, i / n % n, n, n, n, false, true, at, at)) < 1e-5);
  }

  // By pointers, in another order.
  Array<const float*> of_a(2), of_b(2);
  Array<float*> of_c(2);
  for (int i = 0; i < 2; ++i) {
    of_a[i] = a.device + i * n * n;
    of_b[i] = b.device + (1 - i) * n * n;
    of_c[i] = c.device + i * n * n;
  }
  of_a.up();
  of_b.up();
  of_c.up();
  const float one = 1, zero = 0;
  CHECK(cublasSgemmBatched(handle, CUBLAS_OP_T, CUBLAS_OP_N, n, n, n, &one, of_a.device, n,
                           of_b.device, n, &one, of_c.device, n, 2) == CUBLAS_STATUS_SUCCESS);
  std::vector<float> before(2 * n * n);
  for (int i = 0; i < 2 * n * n; ++i) before[i] = c[i];
  c.down();
  for (int i = 0; i < 2 * n * n; ++i) {
    const int at = i / (n * n) * n * n;
    const double want =
        before[i] + dot(a, b, i % n, i / n % n, n, n, n, true, false, at, n * n - at);
    CHECK(std::fabs(c[i] - want) < 1e-5);
  }

  // bfloat16 with sums and results of float, and bytes with sums of int.
  Array<__nv_bfloat16> p(64), q(64);
  fill(p, 64, 6);
  fill(q, 64, 7);
  CHECK(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, p.device, CUDA_R_16BF, 8,
                     q.device, CUDA_R_16BF, 8, &zero, c.device, CUDA_R_32F, 8, CUBLAS_COMPUTE_32F,
                     CUBLAS_GEMM_DEFAULT_TENSOR_OP) == CUBLAS_STATUS_SUCCESS);
  c.down();
  for (int i = 0; i < 64; ++i) {
    CHECK(std::fabs(c[i] - dot(p, q, i % 8, i / 8, 8, 8, 8, false, false)) < 1e-4);
  }
  Array<signed char> r(64), s(64);
  Array<int> t(64);
  for (int i = 0; i < 64; ++i) {
    r[i] = static_cast<signed char>(i % 9 - 4);
    s[i] = static_cast<signed char>(i % 7 - 3);
  }
  r.up();
  s.up();
  const int whole = 1, none = 0;
  CHECK(cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, 8, 8, 8, &whole, r.device, CUDA_R_8I, 8,
                     s.device, CUDA_R_8I, 8, &none, t.device, CUDA_R_32I, 8, CUBLAS_COMPUTE_32I,
                     CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS);
  t.down();
  for (int i = 0; i < 64; ++i) {
    CHECK(t[i] == static_cast<int>(dot(r, s, i % 8, i / 8, 8, 8, 8, true, false)));
  }

  // Wrong sizes are reported as there.
  CHECK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a.device, n - 1, b.device, n,
                    &zero, c.device, n) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
  return ok();
}
