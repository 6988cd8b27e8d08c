// SPDX-License-Identifier: Apache-2.0
// Degrees of a graph's vertices: edges add to both of their ends.
#include "check.cuh"

__global__ void degrees(const int2* edges, int count, int* degree) {
  const int e = blockIdx.x * blockDim.x + threadIdx.x;
  if (e >= count) return;
#ifdef BUG
  degree[edges[e].x] += 1;
  degree[edges[e].y] += 1;
#else
  atomicAdd(&degree[edges[e].x], 1);
  atomicAdd(&degree[edges[e].y], 1);
#endif
}

int main() {
  const int vertices = 20, count = 90;
  Array<int2> edges(count);
  Array<int> degree(vertices);
  int expected[vertices] = {};
  for (int e = 0; e < count; ++e) {
    edges[e] = make_int2(e % vertices, e * 3 % vertices);
    ++expected[edges[e].x];
    ++expected[edges[e].y];
  }
  edges.up();
  degrees<<<2, 64>>>(edges.device, count, degree.device);
  degree.down();
  for (int v = 0; v < vertices; ++v) CHECK(degree[v] == expected[v]);
  return ok();
}
