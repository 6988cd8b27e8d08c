// SPDX-License-Identifier: Apache-2.0
// A copy of more bytes than were allocated is refused, and nobody looks at its error.
#include "../programs/check.cuh"

__global__ void twice(float* x) { x[threadIdx.x] *= 2; }

int main() {
  float host[32] = {};
  float* device;
#ifdef BUG
  CUDA(cudaMalloc(&device, 32));
#else
  CUDA(cudaMalloc(&device, sizeof(host)));
#endif
  CUDA(cudaMemset(device, 0, 32));
  cudaMemcpy(device, host, sizeof(host), cudaMemcpyHostToDevice);  // expect: api_call
  twice<<<1, 8>>>(device);
  CUDA(cudaFree(device));
  return ok();
}
