// SPDX-License-Identifier: Apache-2.0
// A transpose's guard is that of the other axis.
#include "check.cuh"

__global__ void transpose(const float* in, float* out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
#ifdef BUG
  if (x < width) out[x * height + y] = in[y * width + x];  // expect: out_of_bounds
#else
  if (x < width && y < height) out[x * height + y] = in[y * width + x];
#endif
}

int main() {
  const int width = 40, height = 21;
  Array<float> in(width * height), out(width * height);
  for (int i = 0; i < width * height; ++i) in[i] = i;
  in.up();
  transpose<<<dim3(3, 2), dim3(16, 16)>>>(in.device, out.device, width, height);
  out.down();
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) CHECK(out[x * height + y] == y * width + x);
  return ok();
}
// says: guard the access: if (y < height && x < width)
// never: race
