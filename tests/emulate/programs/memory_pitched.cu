// SPDX-License-Identifier: Apache-2.0
// Pitched memory: rows, copies between pitches, memset of a part.
#include "check.cuh"

__global__ void add(char* base, size_t pitch, int width, int height) {
  const int x = threadIdx.x, y = threadIdx.y;
  if (x < width && y < height) reinterpret_cast<float*>(base + y * pitch)[x] += 10 * y + x;
}

int main() {
  char* base = nullptr;
  size_t pitch = 0;
  CUDA(cudaMallocPitch(&base, &pitch, 13 * sizeof(float), 7));
  CHECK(pitch >= 13 * sizeof(float) && pitch % 32 == 0);
  CUDA(cudaMemset2D(base, pitch, 0, 13 * sizeof(float), 7));
  add<<<1, dim3(16, 8)>>>(base, pitch, 13, 7);
  float host[7][20] = {};
  CUDA(cudaMemcpy2D(host, sizeof host[0], base, pitch, 13 * sizeof(float), 7,
                    cudaMemcpyDeviceToHost));
  for (int y = 0; y < 7; ++y) {
    for (int x = 0; x < 20; ++x) CHECK(host[y][x] == (x < 13 ? 10 * y + x : 0));
  }
  CHECK(cudaMemcpy2D(host, 4, base, pitch, 8, 2, cudaMemcpyDeviceToHost) ==
        cudaErrorInvalidPitchValue);
  cudaGetLastError();
  CUDA(cudaFree(base));
  return ok();
}
