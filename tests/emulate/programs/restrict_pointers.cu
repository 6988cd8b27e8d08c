// SPDX-License-Identifier: Apache-2.0
// __restrict__ pointers that are passed the same memory and do no harm: what is read through one of
// them is not what is written through another, however much it looks so.
#include <utility>

#include "check.cuh"

__device__ float* b_of_all;

/// Everything goes through `a`: another element for each way, so that none is read for another.
__global__ void one_of_two(float* __restrict__ a, const float* __restrict__ b, int n) {
  const int i = threadIdx.x;
  const float* from = n > 0 ? a : b;
  const float first = from[i];
  const auto at = [](const float* b, int j) { return b[j]; };
  const float second = at(a, i + 32);
  const float* none = b;
  none = a;
  const float third = none[i + 64];
  struct {
    const float* b;
  } view{a};
  const float fourth = view.b[i + 96];
  const float& fifth = a[i + 128];
  const float sixth = fifth + (n < 0 ? b[i] : 0.0f);
  __syncthreads();
  for (int j = 0; j < 160; j += 32) a[i + j] = first + second + third + fourth + sixth;
}

namespace other {
__device__ float b[64];
}

__global__ void names(float* __restrict__ a, const float* __restrict__ b) {
  const int i = threadIdx.x;
  a[i] = other::b[i] + b_of_all[i];
  if (a == b) return;
  a[i] += b[i];
}

/// Two halves that take turns.
__global__ void ping_pong(float* __restrict__ a, float* __restrict__ b, int rounds) {
  float* from = a;
  float* to = b;
  const int i = threadIdx.x;
  for (int round = 0; round < rounds; ++round) {
    to[i] = from[i ^ 1] + 1;
    __syncthreads();
    std::swap(from, to);
  }
}

/// Rows of a matrix, every other one of them written.
__global__ void rows(float* __restrict__ even, const float* __restrict__ odd, int width) {
  for (int row = 0; row < 4; ++row) {
    even[2 * row * width + threadIdx.x] = odd[2 * row * width + threadIdx.x];
  }
}

int main() {
  Array<float> data(256);
  for (int i = 0; i < 256; ++i) data[i] = 1;
  data.up();
  one_of_two<<<1, 32>>>(data.device, data.device, 32);
  CUDA(cudaMemcpyToSymbol(b_of_all, &data.device, sizeof(float*)));
  names<<<1, 32>>>(data.device, data.device);
  names<<<1, 32>>>(data.device + 32, data.device + 160);
  ping_pong<<<1, 32>>>(data.device + 160, data.device + 192, 5);
  ping_pong<<<1, 32>>>(data.device + 128, data.device + 128, 0);
  rows<<<1, 32>>>(data.device, data.device + 32, 32);
  data.down();
  CHECK(data[0] == 6 && data[31] == 6 && data[255] == 1);
  return ok();
}
