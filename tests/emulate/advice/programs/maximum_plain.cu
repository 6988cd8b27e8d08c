// SPDX-License-Identifier: Apache-2.0
// A maximum that threads compare and set one after another.
#include "check.cuh"

__global__ void maximum(const int* in, int* most, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int value = in[i];
#ifdef BUG
  if (value > most[0]) most[0] = value;
#else
  atomicMax(&most[0], value);
#endif
}

int main() {
  const int n = 500;
  Array<int> in(n), most(1);
  for (int i = 0; i < n; ++i) in[i] = i * 211 % 503;
  in.up();
  maximum<<<4, 128>>>(in.device, most.device, n);
  most.down();
  int expected = 0;
  for (int i = 0; i < n; ++i) expected = in[i] > expected ? in[i] : expected;
  CHECK(most[0] == expected);
  return ok();
}
