// SPDX-License-Identifier: Apache-2.0
// Functions that call themselves.
#include "check.cuh"

__device__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__device__ unsigned ackermann(unsigned m, unsigned n) {
  if (m == 0) return n + 1;
  return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
__global__ void recurse(int* out) {
  out[threadIdx.x] = fibonacci(threadIdx.x);
  if (threadIdx.x == 31) out[31] = static_cast<int>(ackermann(2, 3));
}

int main() {
  Array<int> out(32);
  recurse<<<1, 16>>>(out.device);
  out.down();
  CHECK(out[10] == 55 && out[15] == 610);
  recurse<<<1, 32>>>(out.device);
  out.down();
  CHECK(out[31] == 9);
  return ok();
}
