// SPDX-License-Identifier: Apache-2.0
// Calls the runtime and cuBLAS from C++ that an older standard accepts, and launches a kernel of
// another file by its address.
#include <cublas_v2.h>
#include <cuda_fp16.h>

#include <cstdio>
#include <vector>

#include "scale.h"

#define EXPECT(call)                                                               \
  do {                                                                             \
    if (static_cast<int>(call) != 0) return std::printf("line %d\n", __LINE__), 1; \
  } while (false)

int main() {
  int n = 1000;
  std::vector<float> host(n, 1.5f);
  float* device = nullptr;
  EXPECT(cudaMalloc(&device, n * sizeof(float)));
  cudaStream_t stream = nullptr;
  EXPECT(cudaStreamCreate(&stream));
  EXPECT(cudaMemcpyAsync(device, host.data(), n * sizeof(float), cudaMemcpyHostToDevice, stream));
  EXPECT(launch_scale(device, 2, n, stream));
  float factor = 3;
  void* arguments[] = {&device, &factor, &n};
  EXPECT(cudaLaunchKernel(scale, dim3(16), dim3(64), arguments, 0, stream));
  cublasHandle_t blas;
  EXPECT(cublasCreate(&blas));
  EXPECT(cublasSetStream(blas, stream));
  const float half = __half2float(__float2half(0.5f));
  EXPECT(cublasSscal(blas, n, &half, device, 1));
  EXPECT(cudaMemcpyAsync(host.data(), device, n * sizeof(float), cudaMemcpyDeviceToHost, stream));
  EXPECT(cudaStreamSynchronize(stream));
  EXPECT(cublasDestroy(blas));
  EXPECT(cudaStreamDestroy(stream));
  EXPECT(cudaFree(device));
  cudaFuncAttributes attributes;
  EXPECT(cudaFuncGetAttributes(&attributes, scale));
  for (float value : host) EXPECT(value != 4.5f);
  std::printf("%d\n", attributes.maxThreadsPerBlock);
  return 0;
}
