// SPDX-License-Identifier: Apache-2.0
// Three guards, and which warps have threads on either side of them (--counters shows how many).
#include <cstdio>
#include <vector>

// `rung emulate -D BLOCK=32,8 --counters divergence.cu` has other warps that diverge.
#ifndef BLOCK
#define BLOCK 16, 16
#endif

__global__ void below_diagonal(int* out, int height, int width) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < height && column < width) {
    if (row > column) out[row * width + column] = 1;
  }
}

__global__ void inner(int* out) {  // 30 x 30 of 32 x 32: the first and last warp do not diverge
  const int x = threadIdx.x, y = threadIdx.y;
  if (x > 0 && x < 31 && y > 0 && y < 31) out[32 * y + x] = 1;
}

__global__ void never(int* out, int control) {  // false for all threads if control >= 1
  if (control * static_cast<int>(threadIdx.x) < 0) out[threadIdx.x] = 1;
}

int main() {
  const int height = 176, width = 174, n = height * width;
  const size_t bytes = n * sizeof(int);
  std::vector<int> out(n), block(1024), none(64);
  int* device;
  cudaMalloc(&device, bytes);
  cudaMemset(device, 0, bytes);
  const dim3 threads(BLOCK);
  const dim3 blocks((width + threads.x - 1) / threads.x, (height + threads.y - 1) / threads.y);
  below_diagonal<<<blocks, threads>>>(device, height, width);
  cudaMemcpy(out.data(), device, bytes, cudaMemcpyDeviceToHost);

  cudaMemset(device, 0, bytes);
  inner<<<1, dim3(32, 32)>>>(device);
  cudaMemcpy(block.data(), device, 1024 * sizeof(int), cudaMemcpyDeviceToHost);
  cudaMemset(device, 0, bytes);
  never<<<1, 64>>>(device, 1);
  cudaMemcpy(none.data(), device, 64 * sizeof(int), cudaMemcpyDeviceToHost);

  int wrong = 0;
  for (int i = 0; i < n; ++i) wrong += out[i] != (i / width > i % width);
  for (int i = 0; i < 1024; ++i) {
    wrong += block[i] != (i % 32 > 0 && i % 32 < 31 && i / 32 > 0 && i / 32 < 31);
  }
  for (const int one : none) wrong += one != 0;
  std::printf("divergence: %d wrong: %s\n", wrong, wrong == 0 ? "PASS" : "FAIL");
  cudaFree(device);
  return wrong == 0 ? 0 : 1;
}
