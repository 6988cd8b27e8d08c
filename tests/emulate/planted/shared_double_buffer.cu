// SPDX-License-Identifier: Apache-2.0
// The barrier between two buffers' turns.
#include "../programs/check.cuh"

__global__ void stages(const int* in, int* out) {
  __shared__ int buffer[2][64];
  const int t = threadIdx.x;
  int sum = 0;
  buffer[0][t] = in[t];
  for (int i = 0; i < 4; ++i) {
#ifndef BUG
    __syncthreads();
#else
    if (i % 2 == 0) __syncthreads();
#endif
    if (i < 3) buffer[(i + 1) % 2][t] = in[64 * (i + 1) + t];  // expect: race
    sum += buffer[i % 2][63 - t];                              // expect: race
  }
  out[t] = sum;
}

int main() {
  Array<int> in(256), out(64);
  for (int i = 0; i < 256; ++i) in[i] = i;
  in.up();
  stages<<<1, 64>>>(in.device, out.device);
  return ok();
}
