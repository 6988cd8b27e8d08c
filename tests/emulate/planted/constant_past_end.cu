// SPDX-License-Identifier: Apache-2.0
// An index into constant memory.
#include "../programs/check.cuh"

__constant__ float weights[8];
__global__ void weigh(float* out, int shift) {
  out[threadIdx.x] = weights[threadIdx.x + shift];  // expect: out_of_bounds
}

int main() {
  const float values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  CUDA(cudaMemcpyToSymbol(weights, values, sizeof values));
  Array<float> out(8);
#ifdef BUG
  weigh<<<1, 8>>>(out.device, 2);
#else
  weigh<<<1, 8>>>(out.device, 0);
#endif
  return ok();
}
