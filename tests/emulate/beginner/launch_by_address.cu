// SPDX-License-Identifier: Apache-2.0
// cudaLaunchKernel with pointers to the arguments: findings name them as they do behind <<<>>>.
#include <cuda_runtime.h>

__global__ void clear(float* values, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= count) values[i] = 0;  // expect: out_of_bounds
}

int main() {
  int count = 100;
  float* values = nullptr;
  cudaMalloc(&values, count * sizeof(float));
  void* arguments[] = {&values, &count};
  const auto kernel = reinterpret_cast<const void*>(&clear);
  cudaError_t error = cudaLaunchKernel(kernel, dim3(1), dim3(128), arguments, 0, nullptr);
  if (error == cudaSuccess) error = cudaDeviceSynchronize();
  cudaFree(values);
  return error == cudaSuccess ? 0 : 1;
}
// says: values[100]: values has 100 elements
// says: use i < count instead of i <= count
