// SPDX-License-Identifier: Apache-2.0
// A stencil of five points in one statement, four of which leave the grid at one side each.
#include "check.cuh"

__global__ void relax(float* out, const float* a, int nx, int ny) {
  const int i = threadIdx.x + blockDim.x * blockIdx.x;
  const int j = threadIdx.y + blockDim.y * blockIdx.y;
  if (i >= nx || j >= ny) return;
#ifdef BUG
  out[i + nx * j] = a[i + nx * j] +
                    a[i - 1 + nx * j] +    // expect: out_of_bounds
                    a[i + 1 + nx * j] +    // expect: out_of_bounds
                    a[i + nx * (j - 1)] +  // expect: out_of_bounds
                    a[i + nx * (j + 1)];   // expect: out_of_bounds
#else
  const float left = i > 0 ? a[i - 1 + nx * j] : 0, right = i + 1 < nx ? a[i + 1 + nx * j] : 0;
  const float up = j > 0 ? a[i + nx * (j - 1)] : 0, down = j + 1 < ny ? a[i + nx * (j + 1)] : 0;
  out[i + nx * j] = a[i + nx * j] + left + right + up + down;
#endif
}

int main() {
  const int nx = 20, ny = 30;
  Array<float> in(nx * ny), out(nx * ny);
  for (int i = 0; i < in.size; ++i) in[i] = 1;
  in.up();
  relax<<<dim3(2, 2), dim3(16, 16)>>>(out.device, in.device, nx, ny);
  out.down();
  CHECK(out[0] == 3 && out[1] == 4 && out[nx + 1] == 5 && out[nx - 1] == 3);
  CHECK(out[2 * nx] == 4 && out[3 * nx - 1] == 4 && out[in.size - 1] == 3);
  return ok();
}
// says: and its neighbors in the same statement likewise
