// SPDX-License-Identifier: Apache-2.0
// A grid whose rows of blocks are rounded down, by a variable.
#include "check.cuh"

__global__ void index(int* out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) out[y * width + x] = y * width + x;
}

int main() {
  const int width = 48, height = 42;
  const dim3 block(16, 16);
#ifdef BUG
  const dim3 grid((width + block.x - 1) / block.x, height / block.y);
#else
  const dim3 grid((width + block.x - 1) / block.x, (height + block.y - 1) / block.y);
#endif
  int* out = nullptr;
  CUDA(cudaMalloc(&out, width * height * sizeof(int)));
  index<<<grid, block>>>(out, width, height);  // expect: uninitialized
  static int all[width * height];
  CUDA(cudaMemcpy(all, out, sizeof all, cudaMemcpyDeviceToHost));
#ifndef BUG
  for (int i = 0; i < width * height; ++i) CHECK(all[i] == i);
#endif
  CUDA(cudaFree(out));
  return ok();
}
// says: launch 3 blocks in y
