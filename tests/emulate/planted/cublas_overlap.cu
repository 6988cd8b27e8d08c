// SPDX-License-Identifier: Apache-2.0
// A vector is added to a part of itself, one element further on.
#include <cublas_v2.h>

#include "../programs/check.cuh"

int main() {
  const int n = 100;
  Array<float> x(2 * n);
  for (int i = 0; i < 2 * n; ++i) x[i] = i;
  x.up();
  cublasHandle_t handle;
  CHECK(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  const float one = 1;
#ifdef BUG
  const int apart = 1;
#else
  const int apart = n;
#endif
  cublasSaxpy(handle, n, &one, x.device, 1, x.device + apart, 1);  // expect: race
  cublasSscal(handle, n, &one, x.device, 1);
  x.down();
  CHECK(x[apart] == apart);
  CHECK(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
  return ok();
}
