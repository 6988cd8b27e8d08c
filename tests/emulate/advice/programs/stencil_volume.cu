// SPDX-License-Identifier: Apache-2.0
// A 3-D stencil that goes up through planes of one tile.
#include "check.cuh"

__global__ void smooth(const float* in, float* out, int nx, int ny, int nz) {
  __shared__ float plane[8][16];
  const int x = threadIdx.x, y = threadIdx.y;
  for (int z = 0; z < nz; ++z) {
    plane[y][x] = in[(z * ny + y) * nx + x];
    __syncthreads();
    const float west = x > 0 ? plane[y][x - 1] : 0;
    const float east = x + 1 < nx ? plane[y][x + 1] : 0;
    const float south = y > 0 ? plane[y - 1][x] : 0;
    const float north = y + 1 < ny ? plane[y + 1][x] : 0;
    out[(z * ny + y) * nx + x] = west + east + south + north;
#ifndef BUG
    __syncthreads();
#endif
  }
}

int main() {
  const int nx = 16, ny = 8, nz = 5;
  Array<float> in(nx * ny * nz), out(nx * ny * nz);
  for (int i = 0; i < in.size; ++i) in[i] = i % 23;
  in.up();
  smooth<<<1, dim3(nx, ny)>>>(in.device, out.device, nx, ny, nz);
  out.down();
  for (int z = 0; z < nz; ++z) {
    for (int y = 0; y < ny; ++y) {
      for (int x = 0; x < nx; ++x) {
        const auto at = [&](int u, int v) {
          return u < 0 || v < 0 || u >= nx || v >= ny ? 0 : in[(z * ny + v) * nx + u];
        };
        const float sum = at(x - 1, y) + at(x + 1, y) + at(x, y - 1) + at(x, y + 1);
        CHECK(out[(z * ny + y) * nx + x] == sum);
      }
    }
  }
  return ok();
}
