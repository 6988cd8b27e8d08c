// SPDX-License-Identifier: Apache-2.0
// Levels of a graph: a queue filled by atomic operations.
#include "check.cuh"

__global__ void visit(const int* queue, int count, int* next, int* next_count, int* level,
                      int depth, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int v = queue[i];
  const int neighbors[2] = {(2 * v + 1) % n, (3 * v + 2) % n};
  for (int w : neighbors) {
    if (atomicCAS(&level[w], -1, depth) == -1) next[atomicAdd(next_count, 1)] = w;
  }
}

int main() {
  constexpr int n = 300;
  Array<int> queue(n), next(n), level(n), next_count(1);
  int expected[n];
  for (int i = 0; i < n; ++i) expected[i] = level[i] = -1;
  level[0] = expected[0] = 0;
  level.up();
  queue[0] = 0;
  queue.up();
  int count = 1;
  int *from = queue.device, *to = next.device;
  for (int depth = 1; count > 0; ++depth) {
    next_count[0] = 0;
    next_count.up();
    visit<<<(count + 31) / 32, 32>>>(from, count, to, next_count.device, level.device, depth, n);
    next_count.down();
    count = next_count[0];
    int* other = from;
    from = to;
    to = other;
  }
  level.down();
  for (int depth = 0; depth < n; ++depth) {
    for (int v = 0; v < n; ++v) {
      if (expected[v] != depth) continue;
      for (int w : {(2 * v + 1) % n, (3 * v + 2) % n}) {
        if (expected[w] < 0) expected[w] = depth + 1;
      }
    }
  }
  for (int v = 0; v < n; ++v) CHECK(level[v] == expected[v]);
  return ok();
}
