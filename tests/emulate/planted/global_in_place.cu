// SPDX-License-Identifier: Apache-2.0
// A stencil writes elsewhere than it reads.
#include "../programs/check.cuh"

__global__ void smooth(int* in, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0 && i < n - 1) out[i] = in[i - 1] + in[i + 1];  // expect: race
}

int main() {
  Array<int> in(256), out(256);
  for (int i = 0; i < 256; ++i) in[i] = i % 17;
  in.up();
#ifdef BUG
  smooth<<<4, 64>>>(in.device, in.device, 256);
#else
  smooth<<<4, 64>>>(in.device, out.device, 256);
#endif
  return ok();
}
