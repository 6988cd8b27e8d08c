// SPDX-License-Identifier: Apache-2.0
// Two-dimensional copies between pitched memory and plain arrays.
#include "check.cuh"

__global__ void add_one(int* data, size_t pitch, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) {
    int* row = reinterpret_cast<int*>(reinterpret_cast<char*>(data) + y * pitch);
    row[x] += 1;
  }
}

int main() {
  const int width = 37, height = 11;
  int host[height][width], back[height][width];
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) host[y][x] = 100 * y + x;
  }
  int* device;
  size_t pitch = 0;
  CUDA(cudaMallocPitch(&device, &pitch, width * sizeof(int), height));
  CHECK(pitch >= width * sizeof(int) && pitch % 32 == 0);
  CUDA(cudaMemcpy2D(device, pitch, host, width * sizeof(int), width * sizeof(int), height,
                    cudaMemcpyHostToDevice));
  add_one<<<dim3(3, 2), dim3(16, 8)>>>(device, pitch, width, height);
  CUDA(cudaMemcpy2D(back, width * sizeof(int), device, pitch, width * sizeof(int), height,
                    cudaMemcpyDeviceToHost));
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) CHECK(back[y][x] == 100 * y + x + 1);
  }
  CHECK(cudaMemcpy2D(back, 4, device, pitch, 8, 2, cudaMemcpyDeviceToHost) != cudaSuccess);
  cudaGetLastError();
  CUDA(cudaMemset2D(device, pitch, 0, width * sizeof(int), height));
  CUDA(cudaMemcpy2DAsync(back, width * sizeof(int), device, pitch, width * sizeof(int), height,
                         cudaMemcpyDeviceToHost, 0));
  CUDA(cudaDeviceSynchronize());
  CHECK(back[height - 1][width - 1] == 0);
  CUDA(cudaFree(device));
  return ok();
}
