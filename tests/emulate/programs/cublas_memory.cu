// SPDX-License-Identifier: Apache-2.0
// cuBLAS takes arrays and scalars in every kind of memory that kernels may access.
#include <cublas_v2.h>

#include <cstdlib>

#include "check.cuh"

#define BLAS(call) CHECK((call) == CUBLAS_STATUS_SUCCESS)

__device__ float of_device[64];
__device__ float factor_of_device = 2;
__managed__ float of_both[64];

int main() {
  cublasHandle_t handle;
  BLAS(cublasCreate(&handle));
  const float two = 2, zero = 0;
  float *pinned, *managed, *pooled, *symbol, *factor, *scalar;
  CUDA(cudaMallocHost(&pinned, 256));
  CUDA(cudaMallocManaged(&managed, 256));
  CUDA(cudaMallocManaged(&scalar, sizeof(float)));
  CUDA(cudaMallocAsync(&pooled, 256, 0));
  CUDA(cudaMemsetAsync(pooled, 0, 256, 0));
  CUDA(cudaGetSymbolAddress(reinterpret_cast<void**>(&symbol), of_device));
  CUDA(cudaGetSymbolAddress(reinterpret_cast<void**>(&factor), factor_of_device));
  float* registered = static_cast<float*>(std::aligned_alloc(4096, 4096));
  CUDA(cudaHostRegister(registered, 4096, cudaHostRegisterDefault));
  for (int i = 0; i < 64; ++i) pinned[i] = managed[i] = registered[i] = 1;
  for (float* one : {pinned, managed, registered, pooled, symbol, of_both}) {
    BLAS(cublasSscal(handle, 64, &two, one, 1));
  }
  *scalar = 3;
  BLAS(cublasSscal(handle, 64, scalar, managed, 1));
  BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE));
  BLAS(cublasSscal(handle, 64, factor, managed, 1));
  BLAS(cublasSasum(handle, 64, managed, 1, scalar));
  CUDA(cudaDeviceSynchronize());
  CHECK(pinned[63] == 2 && registered[63] == 2 && managed[63] == 12 && *scalar == 64 * 12);

  BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));
  const auto op = CUBLAS_OP_N;
  BLAS(cublasSgemm(handle, op, op, 0, 4, 4, &two, nullptr, 1, nullptr, 4, &zero, nullptr, 1));
  BLAS(cublasSgemm(handle, op, op, 4, 4, 0, &two, nullptr, 4, nullptr, 1, &zero, pooled, 4));
  float result = 7;
  BLAS(cublasSdot(handle, 0, nullptr, 1, nullptr, 1, &result));
  CHECK(result == 0);

  // What is captured is done when the graph is launched.
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  CUDA(cudaStreamCreate(&stream));
  BLAS(cublasSetStream(handle, stream));
  CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  BLAS(cublasSscal(handle, 64, &two, managed, 1));
  CUDA(cudaStreamEndCapture(stream, &graph));
  CHECK(managed[0] == 12);
  CUDA(cudaGraphInstantiate(&executable, graph, 0));
  CUDA(cudaGraphLaunch(executable, stream));
  CUDA(cudaStreamSynchronize(stream));
  CHECK(managed[0] == 24);
  CUDA(cudaGraphExecDestroy(executable));
  CUDA(cudaGraphDestroy(graph));
  BLAS(cublasDestroy(handle));
  CUDA(cudaStreamDestroy(stream));
  CUDA(cudaHostUnregister(registered));
  std::free(registered);
  CUDA(cudaFreeHost(pinned));
  CUDA(cudaFree(managed));
  CUDA(cudaFree(scalar));
  CUDA(cudaFree(pooled));
  return ok();
}
