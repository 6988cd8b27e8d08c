// SPDX-License-Identifier: Apache-2.0
// More than 48 KiB of dynamic shared memory, asked for.
#include "check.cuh"

__global__ void large(int* out) {
  extern __shared__ int data[];
  const int n = 80 << 8;
  for (int i = threadIdx.x; i < n; i += blockDim.x) data[i] = i;
  __syncthreads();
  int sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += data[n - 1 - i] - i;
  atomicAdd(out, sum);
}

int main() {
  Array<int> out(1);
  const int bytes = 80 << 10;
  large<<<1, 128, bytes>>>(out.device);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  CUDA(cudaFuncSetAttribute(large, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  large<<<1, 128, bytes>>>(out.device);
  CUDA(cudaGetLastError());
  out.down();
  CHECK(out[0] == 0);
  CHECK(cudaFuncSetAttribute(large, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 20) ==
        cudaErrorInvalidValue);
  cudaGetLastError();
  return ok();
}
