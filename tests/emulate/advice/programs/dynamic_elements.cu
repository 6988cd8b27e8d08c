// SPDX-License-Identifier: Apache-2.0
// Dynamic shared memory that is given in elements, not in bytes.
#include "check.cuh"

__global__ void rotate(const double* in, double* out) {
  extern __shared__ double ring[];
  ring[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = ring[(threadIdx.x + 1) % blockDim.x];
}

int main() {
  const int n = 192, block = 96;
  Array<double> in(n), out(n);
  for (int i = 0; i < n; ++i) in[i] = i;
  in.up();
#ifdef BUG
  rotate<<<n / block, block, block>>>(in.device, out.device);
#else
  rotate<<<n / block, block, block * sizeof(double)>>>(in.device, out.device);
#endif
  out.down();
  for (int i = 0; i < n; ++i) CHECK(out[i] == i / block * block + (i + 1) % block);
  return ok();
}
