// SPDX-License-Identifier: Apache-2.0
// Distances in a graph, in a loop that ends when nothing changes.
#include "check.cuh"

__global__ void bfs(const int* next, int* dist, int n) {
  __shared__ int changed;
  const int v = threadIdx.x;
  if (v == 0) dist[0] = 0;
  __syncthreads();
  do {
    __syncthreads();
    if (v == 0) changed = 0;
    __syncthreads();
    const int d = dist[v], to = next[v];
#ifndef BUG
    __syncthreads();
#endif
    if (d >= 0 && dist[to] < 0) {
      dist[to] = d + 1;
      changed = 1;
    }
    __syncthreads();
  } while (changed);
}
int main() {
  Array<int> next(64), dist(64);
  for (int i = 0; i < 64; ++i) next[i] = (i + 5) % 64, dist[i] = -1;
  next.up(), dist.up();
  bfs<<<1, 64>>>(next.device, dist.device, 64);
  dist.down();
  for (int i = 0; i < 64; ++i) CHECK(dist[i * 5 % 64] == i);
  return ok();
}
