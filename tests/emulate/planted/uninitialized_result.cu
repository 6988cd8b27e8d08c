// SPDX-License-Identifier: Apache-2.0
// A kernel writes its input instead of its result, which is copied to the host all the same.
#include "../programs/check.cuh"

__global__ void twice(float* in, float* out) {
#ifdef BUG
  (void)out;
  in[threadIdx.x] = 2 * in[threadIdx.x];
#else
  out[threadIdx.x] = 2 * in[threadIdx.x];
#endif
}

int main() {
  Array<float> in(32);
  float host[32];
  float* out;
  CUDA(cudaMalloc(&out, sizeof(host)));
  twice<<<1, 32>>>(in.device, out);
  CUDA(cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost));  // expect: uninitialized
  CUDA(cudaFree(out));
  return ok();
}
