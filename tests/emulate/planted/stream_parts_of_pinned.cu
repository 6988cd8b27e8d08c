// SPDX-License-Identifier: Apache-2.0
// Results that are copied to pinned memory in a stream are added up once that stream has ended.
#include "../programs/check.cuh"

__global__ void square(float* p, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] *= p[i];
}
static float total(const float* values, int n) {
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += values[i];  // expect: stream_order
  return sum;
}

int main() {
  constexpr int n = 1000, parts = 4;
  float *pinned, *device;
  CUDA(cudaMallocHost(&pinned, parts * n * sizeof(float)));
  CUDA(cudaMalloc(&device, parts * n * sizeof(float)));
  cudaStream_t streams[parts];
  for (int i = 0; i < parts * n; ++i) pinned[i] = 2;
  for (int s = 0; s < parts; ++s) {
    CUDA(cudaStreamCreate(&streams[s]));
    float *from = pinned + s * n, *to = device + s * n;
    CUDA(cudaMemcpyAsync(to, from, n * sizeof(float), cudaMemcpyHostToDevice, streams[s]));
    square<<<(n + 255) / 256, 256, 0, streams[s]>>>(to, n);
    constexpr cudaMemcpyKind down = cudaMemcpyDeviceToHost;
    cudaMemcpyAsync(from, to, n * sizeof(float), down, streams[s]);  // expect: stream_order
  }
#ifdef BUG
  CUDA(cudaStreamSynchronize(streams[0]));
#else
  for (cudaStream_t one : streams) CUDA(cudaStreamSynchronize(one));
#endif
  CHECK(total(pinned, parts * n) == 4 * parts * n);
  for (cudaStream_t one : streams) CUDA(cudaStreamDestroy(one));
  CUDA(cudaFree(device));
  CUDA(cudaFreeHost(pinned));
  return ok();
}
