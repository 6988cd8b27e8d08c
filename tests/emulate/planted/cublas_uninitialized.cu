// SPDX-License-Identifier: Apache-2.0
// A product into a matrix that no code has written, and that beta makes cuBLAS read.
#include <cublas_v2.h>

#include "../programs/check.cuh"

int main() {
  const int n = 8;
  Array<float> a(n * n);
  float* c = nullptr;
  CUDA(cudaMalloc(&c, n * n * sizeof(float)));
  cublasHandle_t handle;
  CHECK(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
#ifdef BUG
  const float one = 1, beta = 0.5f;
#else
  const float one = 1, beta = 0;
#endif
  const auto op = CUBLAS_OP_N;
  const float* x = a.device;
  cublasSgemm(handle, op, op, n, n, n, &one, x, n, x, n, &beta, c, n);  // expect: uninitialized
  CHECK(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
  CUDA(cudaFree(c));
  return ok();
}
