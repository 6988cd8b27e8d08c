// SPDX-License-Identifier: Apache-2.0
// All blocks come to a barrier of one's own.
#include "../programs/check.cuh"

__global__ void meet(int* arrived, int* out) {
  if (threadIdx.x == 0) {
#ifdef BUG
    if (blockIdx.x != 2)
#endif
      atomicAdd(arrived, 1);
    while (atomicAdd(arrived, 0) < 3) {  // expect: deadlock
    }
  }
  __syncthreads();
  out[32 * blockIdx.x + threadIdx.x] = 1;
}

int main() {
  Array<int> arrived(1), out(96);
  int threads = 32;
  (void)threads;
  void* arguments[] = {&arrived.device, &out.device};
  CUDA(cudaLaunchCooperativeKernel((void*)meet, dim3(3), dim3(32), arguments, 0, 0));
  return ok();
}
