// SPDX-License-Identifier: Apache-2.0
// A surface of three dimensions, read and written, and what is outside of it.
#include "check.cuh"

__global__ void raise(cudaSurfaceObject_t surface, int* outside) {
  const int x = threadIdx.x, y = threadIdx.y, z = threadIdx.z;
  int v;
  surf3Dread(&v, surface, x * sizeof(int), y, z);
  surf3Dwrite(v + 1000, surface, x * sizeof(int), y, z);
  if (x + y + z == 0) {
    surf3Dwrite(7, surface, 100 * sizeof(int), 0, 0, cudaBoundaryModeZero);
    surf3Dread(outside, surface, 100 * sizeof(int), 0, 0, cudaBoundaryModeZero);
  }
}

int main() {
  int numbers[24];
  for (int i = 0; i < 24; ++i) numbers[i] = i;
  cudaArray_t array;
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
  const cudaExtent extent = make_cudaExtent(4, 3, 2);
  CUDA(cudaMalloc3DArray(&array, &format, extent, cudaArraySurfaceLoadStore));
  cudaMemcpy3DParms p = {};
  p.srcPtr = make_cudaPitchedPtr(numbers, 4 * sizeof(int), 4, 3);
  p.dstArray = array;
  p.extent = extent;
  p.kind = cudaMemcpyHostToDevice;
  CUDA(cudaMemcpy3D(&p));
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaSurfaceObject_t surface;
  CUDA(cudaCreateSurfaceObject(&surface, &resource));
  Array<int> outside(1);
  raise<<<1, dim3(4, 3, 2)>>>(surface, outside.device);
  cudaMemcpy3DParms back = {};
  back.srcArray = array;
  back.dstPtr = p.srcPtr;
  back.extent = extent;
  back.kind = cudaMemcpyDeviceToHost;
  CUDA(cudaMemcpy3D(&back));
  outside.down();
  CHECK(outside[0] == 0);
  for (int i = 0; i < 24; ++i) CHECK(numbers[i] == 1000 + i);
  CUDA(cudaDestroySurfaceObject(surface));
  CUDA(cudaFreeArray(array));
  return ok();
}
