// SPDX-License-Identifier: Apache-2.0
// Votes and shuffles without masks, as before CUDA 9; streams of launches from kernels.
#include "check.cuh"

__global__ void votes(unsigned* out) {
  const int t = threadIdx.x;
  const unsigned odd = __ballot(t % 2);
  const int any = __any(t == 31), all = __all(t < 32);
  const int next = __shfl_down(t, 1), first = __shfl(t, 0), other = __shfl_xor(t, 1);
  const int before = __shfl_up(t, 1);
  if (t != 5) return;
  out[0] = odd;
  out[1] = any + 2 * all;
  out[2] = next + 100 * first + 1000 * other + 10000 * before;
}

__global__ void add(int* p, int n) { atomicAdd(p, n); }
__global__ void parent(int* p) {
  add<<<1, 32, 0, cudaStreamFireAndForget>>>(p, 1);
  add<<<1, 32, 0, cudaStreamTailLaunch>>>(p, 2);
}

int main() {
  unsigned *out, h[3];
  CUDA(cudaMalloc(&out, sizeof h));
  votes<<<1, 32>>>(out);
  CUDA(cudaMemcpy(h, out, sizeof h, cudaMemcpyDeviceToHost));
  CHECK(h[0] == 0xaaaaaaaau && h[1] == 3 && h[2] == 44006);
  int *p, sum = 0;
  CUDA(cudaMalloc(&p, sizeof sum));
  CUDA(cudaMemset(p, 0, sizeof sum));
  parent<<<1, 1>>>(p);
  CUDA(cudaMemcpy(&sum, p, sizeof sum, cudaMemcpyDeviceToHost));
  CHECK(sum == 96);
  CUDA(cudaFree(out));
  CUDA(cudaFree(p));
  return ok();
}
