// SPDX-License-Identifier: Apache-2.0
// Pointers to device functions, in tables and through symbols.
#include "check.cuh"

typedef float (*Function)(float);
__device__ float twice(float x) { return 2 * x; }
__device__ float square(float x) { return x * x; }
__device__ float negate(float x) { return -x; }
__device__ Function table[3] = {twice, square, negate};
__global__ void apply(Function f, float* out) { out[threadIdx.x] = f(out[threadIdx.x]); }
__global__ void apply_all(float* out) {
  for (int i = 0; i < 3; ++i) out[threadIdx.x] = table[i](out[threadIdx.x]);
}

int main() {
  Array<float> out(32);
  for (int i = 0; i < 32; ++i) out[i] = static_cast<float>(i);
  out.up();
  Function f = nullptr;
  CUDA(cudaMemcpyFromSymbol(&f, table, sizeof f, sizeof(Function)));
  apply<<<1, 32>>>(f, out.device);
  apply_all<<<1, 32>>>(out.device);
  out.down();
  for (int i = 0; i < 32; ++i) CHECK(out[i] == -4.0f * i * i * i * i);
  return ok();
}
