// SPDX-License-Identifier: Apache-2.0
// C++ that calls the runtime and cuBLAS.
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <vector>

extern "C" cudaError_t fill_matrix(float* p, int n, float value, cudaStream_t stream);

int main() {
  constexpr int n = 16;
  float *a = nullptr, *b = nullptr, *c = nullptr;
  for (float** one : {&a, &b, &c}) {
    if (cudaMalloc(reinterpret_cast<void**>(one), n * n * sizeof(float)) != cudaSuccess) return 1;
  }
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  fill_matrix(a, n * n, 2, stream);
  fill_matrix(b, n * n, 3, stream);
  cublasHandle_t handle;
  if (cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS) return 2;
  cublasSetStream(handle, stream);
  const float one = 1, zero = 0;
  cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a, n, b, n, &zero, c, n);
  std::vector<float> product(n * n);
  cudaMemcpyAsync(product.data(), c, n * n * sizeof(float), cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);
  cublasDestroy(handle);
  cudaStreamDestroy(stream);
  for (float* p : {a, b, c}) cudaFree(p);
  return product[n] == 96 ? 0 : 3;
}
