// SPDX-License-Identifier: Apache-2.0
// Behind the end of a shared array lies another.
#include "../programs/check.cuh"

__global__ void two(int* out) {
  __shared__ int first[32];
  __shared__ int second[32];
  const int t = threadIdx.x;
  first[t] = t;
  second[t] = 2 * t;
  __syncthreads();
#ifdef BUG
  out[t] = first[t + 8] + second[t];  // expect: out_of_bounds
#else
  out[t] = first[(t + 8) % 32] + second[t];
#endif
}

int main() {
  Array<int> out(32);
  two<<<1, 32>>>(out.device);
  return ok();
}
