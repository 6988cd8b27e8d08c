// SPDX-License-Identifier: Apache-2.0
// Two arrays in dynamic shared memory are behind each other.
#include "../programs/check.cuh"

__global__ void both(const int* in, int* out) {
  extern __shared__ int memory[];
  int* first = memory;
#ifdef BUG
  int* second = memory + 32;
#else
  int* second = memory + 64;
#endif
  const int t = threadIdx.x;
  first[t] = in[t];       // expect: race
  second[t] = in[t] + 1;  // expect: race
  __syncthreads();
  out[t] = first[63 - t] + second[63 - t];
}

int main() {
  Array<int> in(64), out(64);
  for (int i = 0; i < 64; ++i) in[i] = 100 + i;
  in.up();
  both<<<1, 64, 128 * sizeof(int)>>>(in.device, out.device);
  return ok();
}
