// SPDX-License-Identifier: Apache-2.0
// A volume whose last plane is followed by another.
#include "check.cuh"

__global__ void scale(float* v, int nx, int ny, int nz, float f) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  int z = blockIdx.z * blockDim.z + threadIdx.z;
#ifdef BUG
  if (x < nx && y < ny && z <= nz) v[(z * ny + y) * nx + x] *= f;
#else
  if (x < nx && y < ny && z < nz) v[(z * ny + y) * nx + x] *= f;
#endif
}
int main() {
  const int nx = 10, ny = 6, nz = 5;
  Array<float> v(nx * ny * nz);
  for (int i = 0; i < v.size; ++i) v[i] = i;
  v.up();
  scale<<<dim3(3, 2, 2), dim3(4, 4, 4)>>>(v.device, nx, ny, nz, 2.f);
  v.down();
  for (int i = 0; i < v.size; ++i) CHECK(v[i] == 2 * i);
  return ok();
}
