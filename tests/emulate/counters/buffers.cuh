// SPDX-License-Identifier: Apache-2.0
// What the kernels of this folder read and write.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

constexpr int count = 1 << 14;  // elements that a kernel copies, one a thread
constexpr int threads = 256;    // of a block
constexpr int room = 32 * count;

struct Buffers {
  float* in;  // room for elements of up to 16 bytes, or for strides
  float* out;
  int* numbers;  // `count` of them, below `count`, in no order
};

inline void expect(cudaError_t result) {
  if (result == cudaSuccess) return;
  std::printf("%s\n", cudaGetErrorString(result));
  std::exit(1);
}

inline Buffers make_buffers() {
  Buffers buffers;
  expect(cudaMalloc(&buffers.in, room * sizeof(float)));
  expect(cudaMalloc(&buffers.out, room * sizeof(float)));
  expect(cudaMalloc(&buffers.numbers, count * sizeof(int)));
  expect(cudaMemset(buffers.in, 0, room * sizeof(float)));
  expect(cudaMemset(buffers.out, 0, room * sizeof(float)));
  int* numbers = new int[count];
  for (int i = 0; i < count; ++i) numbers[i] = (i * 5741 + 1237 + (i >> 3) * 611) % count;
  expect(cudaMemcpy(buffers.numbers, numbers, count * sizeof(int), cudaMemcpyHostToDevice));
  delete[] numbers;
  return buffers;
}

inline void free_buffers(const Buffers& buffers) {
  expect(cudaDeviceSynchronize());
  expect(cudaFree(buffers.in));
  expect(cudaFree(buffers.out));
  expect(cudaFree(buffers.numbers));
}

__device__ inline int global_thread() { return blockIdx.x * blockDim.x + threadIdx.x; }
