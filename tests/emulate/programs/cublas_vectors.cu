// SPDX-License-Identifier: Apache-2.0
// cuBLAS's functions of vectors, and of vectors and matrices, against loops on the host.
#include <cublas_v2.h>

#include <vector>

#include "check.cuh"

#define BLAS(call) CHECK((call) == CUBLAS_STATUS_SUCCESS)

bool near(double a, double b) { return std::fabs(a - b) <= 1e-4 * (1 + std::fabs(b)); }

template <class T>
void fill(Array<T>& array, int salt) {
  for (int i = 0; i < array.size; ++i) array[i] = static_cast<T>((i * 7 + salt) % 11 - 5) / 4;
  array.up();
}

void vectors(cublasHandle_t handle) {
  const int n = 300;
  Array<float> x(2 * n), y(3 * n);
  fill(x, 1);
  fill(y, 2);
  float result = 0;
  const float two = 2;
  double dot = 0, squares = 0, sum = 0;
  int largest = 0, smallest = 0;
  x[2 * 77] = -9;
  x[2 * 200] = 9;
  x.up();
  for (int i = 0; i < n; ++i) {
    const float value = x[2 * i];
    dot += value * y[3 * (n - 1 - i)];
    squares += value * value;
    sum += std::fabs(value);
    if (std::fabs(value) > std::fabs(x[2 * largest])) largest = i;
    if (std::fabs(value) < std::fabs(x[2 * smallest])) smallest = i;
  }
  BLAS(cublasSdot(handle, n, x.device, 2, y.device, -3, &result));
  CHECK(near(result, dot));
  BLAS(cublasSnrm2(handle, n, x.device, 2, &result));
  CHECK(near(result, std::sqrt(squares)));
  BLAS(cublasSasum(handle, n, x.device, 2, &result));
  CHECK(near(result, sum));
  int index = 0;
  BLAS(cublasIsamax(handle, n, x.device, 2, &index));
  CHECK(index == largest + 1 && largest == 77);
  BLAS(cublasIsamin(handle, n, x.device, 2, &index));
  CHECK(index == smallest + 1);
  BLAS(cublasSaxpy(handle, n, &two, x.device, 2, y.device, -3));
  std::vector<float> before(y.host, y.host + 3 * n);
  y.down();
  for (int i = 0; i < 3 * n; ++i) {
    CHECK(y[i] == (i % 3 == 0 ? 2 * x[2 * (n - 1 - i / 3)] + before[i] : before[i]));
  }
  BLAS(cublasSscal(handle, n, &two, x.device, 2));
  BLAS(cublasSswap(handle, n, x.device, 2, y.device, 3));
  BLAS(cublasScopy(handle, 1, x.device, 1, x.device + 1, 1));
  std::vector<float> former(x.host, x.host + 2 * n), other(y.host, y.host + 3 * n);
  x.down();
  y.down();
  for (int i = 0; i < n; ++i) CHECK(x[2 * i] == other[3 * i] && y[3 * i] == 2 * former[2 * i]);
  CHECK(x[1] == x[0]);
  // Squares that no float holds.
  x[0] = 3e30f;
  x[1] = -4e30f;
  x.up();
  BLAS(cublasSnrm2(handle, 2, x.device, 1, &result));
  CHECK(near(result / 1e30, 5));
  BLAS(cublasSnrm2(handle, 0, x.device, 1, &result));
  CHECK(result == 0);

  Array<cuDoubleComplex> z(2), w(2);
  z[0] = {1, 2};
  z[1] = {3, -1};
  w[0] = {0, 1};
  w[1] = {2, 2};
  z.up();
  w.up();
  cuDoubleComplex product;
  BLAS(cublasZdotc(handle, 2, z.device, 1, w.device, 1, &product));
  CHECK(near(product.x, 2 + 4) && near(product.y, 1 + 8));
  double norm = 0;
  BLAS(cublasDznrm2(handle, 2, z.device, 1, &norm));
  CHECK(near(norm, std::sqrt(15.0)));
}

void with_matrices(cublasHandle_t handle) {
  const int m = 9, n = 40, lda = 12;
  Array<double> a(lda * n), x(n), y(n), b(lda * n);
  fill(a, 3);
  fill(x, 4);
  fill(y, 5);
  fill(b, 3);
  const double alpha = 2, beta = -1;
  BLAS(cublasDgemv(handle, CUBLAS_OP_N, m, n, &alpha, a.device, lda, x.device, 1, &beta, y.device,
                   2));
  std::vector<double> before(y.host, y.host + n);
  y.down();
  for (int i = 0; i < m; ++i) {
    double sum = 0;
    for (int j = 0; j < n; ++j) sum += a[i + j * lda] * x[j];
    CHECK(near(y[2 * i], 2 * sum - before[2 * i]));
  }
  const double zero = 0;
  BLAS(cublasDgemv(handle, CUBLAS_OP_T, m, n, &alpha, a.device, lda, x.device, 1, &zero, y.device,
                   1));
  y.down();
  for (int j = 0; j < n; ++j) {
    double sum = 0;
    for (int i = 0; i < m; ++i) sum += a[i + j * lda] * x[i];
    CHECK(near(y[j], 2 * sum));
  }
  BLAS(cublasDger(handle, m, n, &alpha, x.device, 1, y.device, 1, b.device, lda));
  b.down();
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < lda; ++i) {
      CHECK(near(b[i + j * lda], a[i + j * lda] + (i < m ? 2 * x[i] * y[j] : 0)));
    }
  }
  // Of a symmetric matrix the lower triangle counts.
  BLAS(cublasDsymv(handle, CUBLAS_FILL_MODE_LOWER, m, &alpha, a.device, lda, x.device, 1, &zero,
                   y.device, 1));
  y.down();
  for (int i = 0; i < m; ++i) {
    double sum = 0;
    for (int j = 0; j < m; ++j) sum += (i >= j ? a[i + j * lda] : a[j + i * lda]) * x[j];
    CHECK(near(y[i], 2 * sum));
  }
}

int main() {
  cublasHandle_t handle;
  BLAS(cublasCreate(&handle));
  vectors(handle);
  with_matrices(handle);
  // Copies of vectors and matrices that are strided on both sides.
  const int rows = 3, columns = 4;
  float host[20], back[24] = {};
  for (int i = 0; i < 20; ++i) host[i] = static_cast<float>(i);
  Array<float> device(28);
  BLAS(cublasSetMatrix(rows, columns, sizeof(float), host, 5, device.device, 7));
  BLAS(cublasGetMatrix(rows, columns, sizeof(float), device.device, 7, back, 6));
  for (int i = 0; i < 24; ++i) CHECK(back[i] == (i % 6 < rows ? host[i % 6 + i / 6 * 5] : 0));
  BLAS(cublasSetVector(5, sizeof(float), host, 2, device.device, 3));
  BLAS(cublasGetVector(5, sizeof(float), device.device, 3, back, 1));
  for (int i = 0; i < 5; ++i) CHECK(back[i] == host[2 * i]);
  CHECK(cublasSetVector(5, sizeof(float), host, 0, device.device, 1) ==
        CUBLAS_STATUS_INVALID_VALUE);
  BLAS(cublasDestroy(handle));
  return ok();
}
