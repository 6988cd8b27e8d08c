// SPDX-License-Identifier: Apache-2.0
// Shortest distances in a graph: one thread per edge relaxes it, until no distance changes.
#include <algorithm>
#include <cstdio>
#include <vector>

struct Edge {
  int from, to, length;
};

__global__ void relax(const Edge* edges, int n, const int* before, int* after) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int distance = before[edges[i].from] + edges[i].length;
  atomicMin(&after[edges[i].to], distance);
}

int main() {
  const int nodes = 64, far = 1 << 20;
  std::vector<Edge> edges;
  for (int i = 0; i < nodes; ++i) {
    for (int step : {1, 5, 12}) edges.push_back({i, (i + step) % nodes, (i * step) % 13 + step});
  }
  const int n = edges.size();
  std::vector<int> distances(nodes, far), wanted(nodes, far);
  distances[0] = wanted[0] = 0;
  for (int round = 0; round < nodes; ++round) {
    for (const Edge& e : edges) wanted[e.to] = std::min(wanted[e.to], wanted[e.from] + e.length);
  }

  Edge* edges_device;
  int *before, *after;
  const size_t bytes = nodes * sizeof(int);
  cudaMalloc(&edges_device, n * sizeof(Edge));
  cudaMalloc(&before, bytes);
  cudaMalloc(&after, bytes);
  cudaMemcpy(edges_device, edges.data(), n * sizeof(Edge), cudaMemcpyHostToDevice);
  cudaMemcpy(before, distances.data(), bytes, cudaMemcpyHostToDevice);
  for (bool changed = true; changed;) {
    const std::vector<int> last = distances;
    cudaMemcpy(after, before, bytes, cudaMemcpyDeviceToDevice);
    relax<<<(n + 63) / 64, 64>>>(edges_device, n, before, after);
    cudaMemcpy(distances.data(), after, bytes, cudaMemcpyDeviceToHost);
    std::swap(before, after);
    changed = distances != last;
  }

  int wrong = 0;
  for (int i = 0; i < nodes; ++i) wrong += distances[i] != wanted[i];
  std::printf("graph_update: %d wrong: %s\n", wrong, wrong == 0 ? "PASS" : "FAIL");
  cudaFree(edges_device);
  cudaFree(before);
  cudaFree(after);
  return wrong == 0 ? 0 : 1;
}
