// SPDX-License-Identifier: Apache-2.0
// Two streams work on the halves of an array, and one reads an element of the other's.
#include "../programs/check.cuh"

__global__ void smooth(int* to, const int* from, int begin, int end, int length) {
  const int i = begin + blockIdx.x * blockDim.x + threadIdx.x;
  if (i < end) to[i] = from[i] + (i + 1 < length ? from[i + 1] : 0);
}
__global__ void fill(int* p, int begin, int end) {
  const int i = begin + blockIdx.x * blockDim.x + threadIdx.x;
  if (i < end) p[i] = i;
}

int main() {
  constexpr int n = 256, half = n / 2;
  Array<int> a(n), b(n);
  cudaStream_t streams[2];
  for (int s = 0; s < 2; ++s) {
    CUDA(cudaStreamCreate(&streams[s]));
    fill<<<1, half, 0, streams[s]>>>(a.device, s * half, s * half + half);  // expect: stream_order
  }
  for (int s = 0; s < 2; ++s) {
#ifdef BUG
    const int length = n;
#else
    const int length = s * half + half;
#endif
    const int first = s * half;
    int *const to = b.device, *const from = a.device;
    const int end = first + half;
    smooth<<<1, half, 0, streams[s]>>>(to, from, first, end, length);  // expect: stream_order
  }
  b.down();
  CHECK(b[1] == 3);
  for (int s = 0; s < 2; ++s) CUDA(cudaStreamDestroy(streams[s]));
  return ok();
}
