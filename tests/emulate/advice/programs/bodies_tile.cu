// SPDX-License-Identifier: Apache-2.0
// Forces between bodies, whose positions come by tiles.
#include "check.cuh"

__global__ void forces(const float2* bodies, float* pull, int n) {
  extern __shared__ float2 nearby[];
  const int self = blockIdx.x * blockDim.x + threadIdx.x;
  const float2 me = bodies[self];
  float total = 0;
  for (int base = 0; base < n; base += blockDim.x) {
    nearby[threadIdx.x] = bodies[base + threadIdx.x];
    __syncthreads();
    for (int j = 0; j < blockDim.x; ++j) total += (nearby[j].x - me.x) * nearby[j].y;
#ifndef BUG
    __syncthreads();
#endif
  }
  pull[self] = total;
}

int main() {
  const int n = 192;
  Array<float2> bodies(n);
  Array<float> pull(n);
  for (int i = 0; i < n; ++i) bodies[i] = make_float2(i % 13, i % 3);
  bodies.up();
  forces<<<n / 64, 64, 64 * sizeof(float2)>>>(bodies.device, pull.device, n);
  pull.down();
  for (int i = 0; i < n; ++i) {
    float total = 0;
    for (int j = 0; j < n; ++j) total += (bodies[j].x - bodies[i].x) * bodies[j].y;
    CHECK(pull[i] == total);
  }
  return ok();
}
