// SPDX-License-Identifier: Apache-2.0
// Generations of a cellular automaton on a torus, two buffers in turn.
#include "check.cuh"

__global__ void generation(const unsigned char* in, unsigned char* out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  int count = 0;
  for (int dy = -1; dy <= 1; ++dy) {
    for (int dx = -1; dx <= 1; ++dx) {
      if (dx != 0 || dy != 0)
        count += in[(y + dy + height) % height * width + (x + dx + width) % width];
    }
  }
  out[y * width + x] = count == 3 || (count == 2 && in[y * width + x] != 0);
}

int main() {
  constexpr int w = 20, h = 18;
  Array<unsigned char> a(w * h), b(w * h);
  const int glider[5][2] = {{1, 0}, {2, 1}, {0, 2}, {1, 2}, {2, 2}};
  for (const auto& cell : glider) a[cell[1] * w + cell[0]] = 1;
  a.up();
  for (int i = 0; i < 8; ++i) {
    generation<<<dim3(2, 3), dim3(16, 8)>>>(i % 2 == 0 ? a.device : b.device,
                                            i % 2 == 0 ? b.device : a.device, w, h);
  }
  a.down();
  // In four generations it moves by one along each axis.
  int alive = 0;
  for (int i = 0; i < w * h; ++i) alive += a[i];
  CHECK(alive == 5);
  for (const auto& cell : glider) CHECK(a[(cell[1] + 2) * w + cell[0] + 2] == 1);
  return ok();
}
