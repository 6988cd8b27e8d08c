// SPDX-License-Identifier: Apache-2.0
// A counter in managed memory.
#include "check.cuh"

__global__ void primes(unsigned* count, unsigned n) {
  unsigned i = threadIdx.x + blockIdx.x * blockDim.x + 2;
  if (i > n) return;
  bool prime = true;
  for (unsigned d = 2; d * d <= i; ++d) prime &= i % d != 0;
#ifdef BUG
  if (prime) (*count)++;
#else
  if (prime) atomicAdd(count, 1u);
#endif
}
int main() {
  unsigned* count;
  CUDA(cudaMallocManaged(&count, sizeof *count));
  *count = 0;
  primes<<<2, 64>>>(count, 100);
  CUDA(cudaDeviceSynchronize());
  CHECK(*count == 25);
  cudaFree(count);
  return ok();
}
