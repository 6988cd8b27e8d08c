// SPDX-License-Identifier: Apache-2.0
// Loads and stores with cache hints.
#include "check.cuh"

__global__ void move(const float4* __restrict__ from, float4* to, const int* n, int* m) {
  const int t = threadIdx.x;
  float4 v = __ldg(&from[t]);
  v.x += __ldcs(n) + __ldcg(n) + __ldca(n);
  __stcs(&to[t], v);
  __stcg(&m[t], t);
  __stwt(&m[32 + t], __ldcv(n));
}

int main() {
  Array<float4> from(32), to(32);
  Array<int> n(1), m(64);
  for (int i = 0; i < 32; ++i) from[i] = make_float4(i, 1, 2, 3);
  n[0] = 5;
  from.up();
  n.up();
  move<<<1, 32>>>(from.device, to.device, n.device, m.device);
  to.down();
  m.down();
  for (int i = 0; i < 32; ++i)
    CHECK(to[i].x == i + 15 && to[i].w == 3 && m[i] == i && m[32 + i] == 5);
  return ok();
}
