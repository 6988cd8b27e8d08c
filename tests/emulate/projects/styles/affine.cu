// SPDX-License-Identifier: Apache-2.0
// Kernel that uses a function and a constant of another file.
#include "affine.h"

extern __device__ int twice(int);
extern __constant__ int offset;

__global__ void affine(int* values, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = twice(values[i]) + offset;
}

void apply(int* values, int count) {
  int* device;
  cudaMalloc(&device, count * sizeof(int));
  cudaMemcpy(device, values, count * sizeof(int), cudaMemcpyHostToDevice);
  affine<<<(count + 127) / 128, 128>>>(device, count);
  cudaMemcpy(values, device, count * sizeof(int), cudaMemcpyDeviceToHost);
  cudaFree(device);
}
