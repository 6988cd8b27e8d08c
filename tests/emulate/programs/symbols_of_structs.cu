// SPDX-License-Identifier: Apache-2.0
// Constant and device variables of struct and array types, by parts.
#include "check.cuh"

struct Camera {
  float3 position;
  float matrix[2][2];
};
__constant__ Camera camera;
__device__ int grid_of_numbers[4][8];
__global__ void use(float* out) {
  out[threadIdx.x] = camera.position.y + camera.matrix[1][0] + grid_of_numbers[2][threadIdx.x];
}

int main() {
  const Camera host = {make_float3(1, 2, 3), {{4, 5}, {6, 7}}};
  CUDA(cudaMemcpyToSymbol(camera, &host, sizeof host));
  const float other = 60;
  CUDA(cudaMemcpyToSymbol(camera, &other, sizeof other,
                          offsetof(Camera, matrix) + 2 * sizeof(float)));
  int row[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  CUDA(cudaMemcpyToSymbol(grid_of_numbers, row, sizeof row, 2 * sizeof row));
  Array<float> out(8);
  use<<<1, 8>>>(out.device);
  out.down();
  for (int i = 0; i < 8; ++i) CHECK(out[i] == 62 + i);
  void* address = nullptr;
  size_t bytes = 0;
  CUDA(cudaGetSymbolAddress(&address, grid_of_numbers));
  CUDA(cudaGetSymbolSize(&bytes, grid_of_numbers));
  CHECK(bytes == sizeof(int) * 32);
  CUDA(cudaMemset(address, 0, bytes));
  int back = -1;
  CUDA(cudaMemcpyFromSymbol(&back, grid_of_numbers, sizeof back, 19 * sizeof(int)));
  CHECK(back == 0);
  return ok();
}
