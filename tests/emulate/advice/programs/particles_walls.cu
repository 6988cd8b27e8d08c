// SPDX-License-Identifier: Apache-2.0
// Particles that count how often they hit a wall.
#include "check.cuh"

struct Particle {
  float x, v;
  int hits;
};
__global__ void step(Particle* p, int* walls, int n) {
  int id = blockIdx.x * blockDim.x + threadIdx.x;
  if (id < n) {
    p[id].x += p[id].v;
    if (p[id].x > 10) {
      p[id].v = -p[id].v;
#ifdef BUG
      walls[0]++;
#else
      atomicAdd(&walls[0], 1);
#endif
    }
  }
}
int main() {
  Array<Particle> p(100);
  Array<int> walls(1);
  for (int i = 0; i < 100; ++i) p[i] = {(float)(i % 12), 2.f, 0};
  p.up();
  step<<<4, 32>>>(p.device, walls.device, 100);
  walls.down();
  int e = 0;
  for (int i = 0; i < 100; ++i) e += p[i].x + 2 > 10;
  CHECK(walls[0] == e);
  return ok();
}
