// SPDX-License-Identifier: Apache-2.0
// cuBLAS's functions of triangular, symmetric and diagonal matrices against loops on the host, in
// every combination of side, triangle and operation.
#include <cublas_v2.h>

#include <vector>

#include "check.cuh"

#define BLAS(call) CHECK((call) == CUBLAS_STATUS_SUCCESS)

bool near(double a, double b) { return std::fabs(a - b) <= 1e-9 * (1 + std::fabs(b)); }

template <class T>
void fill(Array<T>& array, int salt) {
  for (int i = 0; i < array.size; ++i) array[i] = static_cast<T>((i * 7 + salt) % 11 - 5) / 8;
  array.up();
}

/// Element (i, j) of op(A), of which one triangle is there.
double triangle(const Array<double>& a, int ld, int i, int j, bool transposed, bool lower,
                bool unit) {
  if (transposed) {
    const int other = i;
    i = j;
    j = other;
  }
  if (i == j) return unit ? 1 : a.host[i + j * ld];
  return (i > j) == lower ? a.host[i + j * ld] : 0;
}

void triangles(cublasHandle_t handle) {
  const int m = 7, n = 5, lda = 8, ldb = 9;
  for (int way = 0; way < 16; ++way) {
    const bool left = (way & 1) != 0, lower = (way & 2) != 0, transposed = (way & 4) != 0;
    const bool unit = (way & 8) != 0;
    const int order = left ? m : n;
    Array<double> a(lda * order), b(ldb * n), c(ldb * n);
    fill(a, 1);
    fill(b, 2);
    for (int i = 0; i < order; ++i) a[i + i * lda] = 2 + i;
    a.up();
    const double alpha = 3;
    const auto side = left ? CUBLAS_SIDE_LEFT : CUBLAS_SIDE_RIGHT;
    const auto part = lower ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER;
    const auto op = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const auto diagonal = unit ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
    BLAS(cublasDtrmm(handle, side, part, op, diagonal, m, n, &alpha, a.device, lda, b.device, ldb,
                     c.device, ldb));
    c.down();
    for (int j = 0; j < n; ++j) {
      for (int i = 0; i < m; ++i) {
        double sum = 0;
        for (int l = 0; l < order; ++l) {
          sum += left ? triangle(a, lda, i, l, transposed, lower, unit) * b[l + j * ldb]
                      : b[i + l * ldb] * triangle(a, lda, l, j, transposed, lower, unit);
        }
        CHECK(near(c[i + j * ldb], 3 * sum));
      }
    }
    // Solving undoes it, in place.
    const double third = 1.0 / 3;
    BLAS(cublasDtrsm(handle, side, part, op, diagonal, m, n, &third, a.device, lda, c.device, ldb));
    c.down();
    for (int j = 0; j < n; ++j) {
      for (int i = 0; i < m; ++i) CHECK(near(c[i + j * ldb], b[i + j * ldb]));
    }
    if (!left) continue;
    BLAS(cublasDcopy(handle, m, b.device, 1, c.device, 1));
    BLAS(cublasDtrsv(handle, part, op, diagonal, m, a.device, lda, c.device, 1));
    c.down();
    for (int i = 0; i < m; ++i) {
      double sum = 0;
      for (int l = 0; l < m; ++l) {
        sum += triangle(a, lda, i, l, transposed, lower, unit) * c[l];
      }
      CHECK(near(sum, b[i]));
    }
  }
}

int main() {
  cublasHandle_t handle;
  BLAS(cublasCreate(&handle));
  triangles(handle);

  const int m = 6, n = 10;
  Array<double> a(m * n), b(m * n), c(n * n), x(n);
  fill(a, 3);
  fill(b, 4);
  fill(x, 5);
  const double two = 2, three = 3, zero = 0;
  BLAS(cublasDgeam(handle, CUBLAS_OP_T, CUBLAS_OP_N, n, m, &two, a.device, m, &three, b.device, n,
                   c.device, n));
  c.down();
  for (int j = 0; j < m; ++j) {
    for (int i = 0; i < n; ++i) CHECK(near(c[i + j * n], 2 * a[j + i * m] + 3 * b[i + j * n]));
  }
  // A transpose needs no B.
  BLAS(cublasDgeam(handle, CUBLAS_OP_T, CUBLAS_OP_N, n, m, &two, a.device, m, &zero, nullptr, n,
                   c.device, n));
  c.down();
  for (int i = 0; i < n; ++i) CHECK(near(c[i], 2 * a[i * m]));
  BLAS(cublasDdgmm(handle, CUBLAS_SIDE_RIGHT, m, n, a.device, m, x.device, 1, c.device, m));
  c.down();
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < m; ++i) CHECK(near(c[i + j * m], a[i + j * m] * x[j]));
  }
  fill(c, 6);
  std::vector<double> before(c.host, c.host + n * n);
  BLAS(cublasDsyrk(handle, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_T, n, m, &two, a.device, m, &three,
                   c.device, n));
  c.down();
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < n; ++i) {
      double want = before[i + j * n];
      if (i <= j) {
        want *= 3;
        for (int l = 0; l < m; ++l) want += 2 * a[l + i * m] * a[l + j * m];
      }
      CHECK(near(c[i + j * n], want));
    }
  }
  BLAS(cublasDestroy(handle));
  return ok();
}
