// SPDX-License-Identifier: Apache-2.0
// A matrix is smaller than its leading dimension and the number of its columns say.
#include <cublas_v2.h>

#include "../programs/check.cuh"

int main() {
  const int n = 24;
#ifdef BUG
  Array<float> b(n * n / 2);
#else
  Array<float> b(n * n);
#endif
  Array<float> a(n * n), c(n * n);
  const float one = 1, zero = 0;
  cublasHandle_t handle;
  CHECK(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  const float *x = a.device, *y = b.device;
  float* z = c.device;
  const auto op = CUBLAS_OP_N;
  cublasSgemm(handle, op, op, n, n, n, &one, x, n, y, n, &zero, z, n);  // expect: out_of_bounds
  CHECK(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
  return ok();
}
