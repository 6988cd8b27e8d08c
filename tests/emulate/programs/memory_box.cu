// SPDX-License-Identifier: Apache-2.0
// A box of a three-dimensional allocation.
#include "check.cuh"

__global__ void fill(cudaPitchedPtr memory, int width, int height, int depth) {
  char* base = static_cast<char*>(memory.ptr);
  for (int z = 0; z < depth; ++z) {
    for (int y = threadIdx.y; y < height; y += blockDim.y) {
      int* row =
          reinterpret_cast<int*>(base + (static_cast<size_t>(z) * height + y) * memory.pitch);
      for (int x = threadIdx.x; x < width; x += blockDim.x) row[x] = 100 * z + 10 * y + x;
    }
  }
}

int main() {
  cudaPitchedPtr memory;
  const cudaExtent extent = make_cudaExtent(6 * sizeof(int), 5, 4);
  CUDA(cudaMalloc3D(&memory, extent));
  fill<<<1, dim3(4, 4)>>>(memory, 6, 5, 4);
  int host[2][3][4];
  cudaMemcpy3DParms p = {};
  p.srcPtr = memory;
  p.srcPos = make_cudaPos(sizeof(int), 2, 1);
  p.dstPtr = make_cudaPitchedPtr(host, 4 * sizeof(int), 4, 3);
  p.extent = make_cudaExtent(4 * sizeof(int), 3, 2);
  p.kind = cudaMemcpyDeviceToHost;
  CUDA(cudaMemcpy3D(&p));
  for (int z = 0; z < 2; ++z) {
    for (int y = 0; y < 3; ++y) {
      for (int x = 0; x < 4; ++x) CHECK(host[z][y][x] == 100 * (z + 1) + 10 * (y + 2) + x + 1);
    }
  }
  CUDA(cudaMemset3D(memory, 0x11, extent));
  CUDA(cudaMemcpy3D(&p));
  CHECK(host[1][2][3] == 0x11111111);
  CUDA(cudaFree(memory.ptr));
  return ok();
}
