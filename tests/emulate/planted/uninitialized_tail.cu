// SPDX-License-Identifier: Apache-2.0
// A copy brings all elements.
#include "../programs/check.cuh"

__global__ void twice(const float* in, float* out) {
  out[threadIdx.x] = 2 * in[threadIdx.x];  // expect: uninitialized
}

int main() {
  float values[48] = {};
  float* memory;
  CUDA(cudaMalloc(&memory, sizeof values));
#ifdef BUG
  CUDA(cudaMemcpy(memory, values, 48, cudaMemcpyHostToDevice));
#else
  CUDA(cudaMemcpy(memory, values, sizeof values, cudaMemcpyHostToDevice));
#endif
  Array<float> out(48);
  twice<<<1, 48>>>(memory, out.device);
  CUDA(cudaFree(memory));
  return ok();
}
