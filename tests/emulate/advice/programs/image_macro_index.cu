// SPDX-License-Identifier: Apache-2.0
// An image whose index is a macro.
#include "check.cuh"

#define IDX(r, c, w) ((r) * (w) + (c))
__global__ void add(const float* a, float* b, int w, int h) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
#ifdef BUG
  b[IDX(r, c, w)] = a[IDX(r, c, w)] + 1;
#else
  if (r < h && c < w) b[IDX(r, c, w)] = a[IDX(r, c, w)] + 1;
#endif
}
int main() {
  Array<float> a(30 * 21), b(30 * 21);
  for (int i = 0; i < a.size; ++i) a[i] = i;
  a.up();
  add<<<dim3(4, 3), dim3(8, 8)>>>(a.device, b.device, 30, 21);
  b.down();
  for (int i = 0; i < a.size; ++i) CHECK(b[i] == i + 1);
  return ok();
}
