// SPDX-License-Identifier: Apache-2.0
// A 1-D stencil with a halo in shared memory.
#include "check.cuh"

#define RADIUS 3
#define BLOCK 128

__global__ void stencil(const int* in, int* out, int n) {
  __shared__ int line[BLOCK + 2 * RADIUS];
  int g = blockIdx.x * blockDim.x + threadIdx.x;
  int l = threadIdx.x + RADIUS;
  line[l] = in[g];
  if (threadIdx.x < RADIUS) {
    line[l - RADIUS] = g >= RADIUS ? in[g - RADIUS] : 0;
    line[l + BLOCK] = g + BLOCK < n ? in[g + BLOCK] : 0;
  }
#ifndef BUG
  __syncthreads();
#endif
  int sum = 0;
  for (int o = -RADIUS; o <= RADIUS; o++) sum += line[l + o];
  out[g] = sum;
}

int main() {
  const int n = 512;
  Array<int> in(n), out(n);
  for (int i = 0; i < n; ++i) in[i] = i % 17;
  in.up();
  stencil<<<n / BLOCK, BLOCK>>>(in.device, out.device, n);
  out.down();
  for (int i = 0; i < n; ++i) {
    int sum = 0;
    for (int o = -RADIUS; o <= RADIUS; ++o) sum += i + o >= 0 && i + o < n ? in[i + o] : 0;
    CHECK(out[i] == sum);
  }
  return ok();
}
