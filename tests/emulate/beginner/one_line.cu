// SPDX-License-Identifier: Apache-2.0
// A kernel of one line, between whose statements a barrier is missing.
#include <cstdio>

// clang-format off
__global__ void f(int*a) { __shared__ int s[9]; int t = threadIdx.x; s[t] = a[t]; a[t] = s[8 - t]; }
// expect above: race
// clang-format on

int main() {
  int* a;
  cudaMalloc(&a, 256);
  cudaMemset(a, 0, 256);
  f<<<1, 9>>>(a);
  cudaDeviceSynchronize();
  return 0;
}
// says: () between `s[t] = a[t];` and `a[t] = s[8 - t];` in line 6
