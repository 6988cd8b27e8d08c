// SPDX-License-Identifier: Apache-2.0
// ceil() of a quotient of integers, which has been rounded down already.
#include <cmath>

#include "check.cuh"

__global__ void twice(float* out, const float* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2 * in[i];
}

int main() {
  const int n = 1000;
  Array<float> in(n);
  for (int i = 0; i < n; ++i) in[i] = 1;
  in.up();
  float* out = nullptr;
  CUDA(cudaMalloc(&out, n * sizeof(float)));
#ifdef BUG
  twice<<<ceil(n / 256), 256>>>(out, in.device, n);  // expect: uninitialized
#else
  twice<<<(n + 255) / 256, 256>>>(out, in.device, n);
#endif
  CUDA(cudaMemcpy(in.host, out, n * sizeof(float), cudaMemcpyDeviceToHost));
#ifndef BUG
  CHECK(in[n - 1] == 2);
#endif
  CUDA(cudaFree(out));
  return ok();
}
// says: ceil() gets a quotient of integers
