// SPDX-License-Identifier: Apache-2.0
// A function of the host reads what a copy in another stream brings.
#include "../programs/check.cuh"

__global__ void make(int* p) { p[threadIdx.x] = threadIdx.x; }

struct Sum {
  const int* values;
  int result;
};
static void add(void* data) {
  Sum& sum = *static_cast<Sum*>(data);
  for (int i = 0; i < 64; ++i) sum.result += sum.values[i];
}

int main() {
  Array<int> a(64);
  int* pinned;
  cudaStream_t first, second;
  CUDA(cudaStreamCreate(&first));
  CUDA(cudaStreamCreate(&second));
  CUDA(cudaMallocHost(&pinned, 64 * sizeof(int)));
  Sum sum{pinned, 0};
  make<<<1, 64, 0, first>>>(a.device);
  CUDA(cudaMemcpyAsync(pinned, a.device, 256, cudaMemcpyDefault, first));  // expect: stream_order
#ifdef BUG
  CUDA(cudaLaunchHostFunc(second, add, &sum));  // expect: stream_order
#else
  CUDA(cudaLaunchHostFunc(first, add, &sum));
#endif
  CUDA(cudaDeviceSynchronize());
  CHECK(sum.result == 63 * 32);
  CUDA(cudaFreeHost(pinned));
  CUDA(cudaStreamDestroy(first));
  CUDA(cudaStreamDestroy(second));
  return ok();
}
