// SPDX-License-Identifier: Apache-2.0
// The direction of a copy does not fit its pointers. A program that asks for its error is right.
#include "../programs/check.cuh"

__global__ void fill(float* x) { x[threadIdx.x] = 2; }

int main() {
  float host[32] = {};
  float* device;
  CUDA(cudaMalloc(&device, sizeof(host)));
  fill<<<1, 32>>>(device);
  if (device != nullptr)
    cudaMemcpy(host, device, sizeof(host), cudaMemcpyHostToDevice);  // expect: api_call
#ifndef BUG
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
#endif
  CUDA(cudaFree(device));
  return ok();
}
