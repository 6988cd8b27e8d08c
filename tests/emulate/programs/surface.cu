// SPDX-License-Identifier: Apache-2.0
// Surfaces: read, changed, written, with boundary modes.
#include "check.cuh"

__global__ void invert(cudaSurfaceObject_t surface, int width, int height) {
  const int x = threadIdx.x, y = threadIdx.y;
  int v = 0;
  surf2Dread(&v, surface, x * sizeof(int), y);
  surf2Dwrite(-v, surface, x * sizeof(int), y);
  if (x == 0 && y == 0) surf2Dwrite(99, surface, width * sizeof(int), 0, cudaBoundaryModeZero);
  __syncthreads();
  if (x == 0 && y == 0) {
    const int outside = surf2Dread<int>(surface, -4, 0, cudaBoundaryModeZero);
    if (outside != 0) surf2Dwrite(1234, surface, 0, 0);
  }
}

int main() {
  int host[6][8], back[6][8];
  for (int i = 0; i < 48; ++i) host[i / 8][i % 8] = i;
  cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
  cudaArray_t array;
  CUDA(cudaMallocArray(&array, &format, 8, 6, cudaArraySurfaceLoadStore));
  CUDA(cudaMemcpy2DToArray(array, 0, 0, host, 32, 32, 6, cudaMemcpyHostToDevice));
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaSurfaceObject_t surface = 0;
  CUDA(cudaCreateSurfaceObject(&surface, &resource));
  invert<<<1, dim3(8, 6)>>>(surface, 8, 6);
  CUDA(cudaMemcpy2DFromArray(back, 32, array, 0, 0, 32, 6, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 48; ++i) CHECK(back[i / 8][i % 8] == -i);
  CUDA(cudaDestroySurfaceObject(surface));
  CUDA(cudaFreeArray(array));
  return ok();
}
