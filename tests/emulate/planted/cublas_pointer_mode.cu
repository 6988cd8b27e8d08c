// SPDX-License-Identifier: Apache-2.0
// A result is to be written to the device, but nobody has set the pointer mode.
#include <cublas_v2.h>

#include "../programs/check.cuh"

int main() {
  const int n = 40;
  Array<float> x(n), result(1);
  for (int i = 0; i < n; ++i) x[i] = 1;
  x.up();
  cublasHandle_t handle;
  CHECK(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
#ifndef BUG
  CHECK(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE) == CUBLAS_STATUS_SUCCESS);
#endif
  cublasSasum(handle, n, x.device, 1, result.device);  // expect: launch
#ifndef BUG
  result.down();
  CHECK(result[0] == n);
#endif
  CHECK(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
  return ok();
}
