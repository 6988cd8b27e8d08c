// SPDX-License-Identifier: Apache-2.0
// Bug: the store of the next tile moved ahead along with its load, before the barrier.
// rung emulate: race in line 18
#include <cstdio>
#include <vector>

constexpr int TILE = 128;

// y[i] = x[i - 1] + x[i] + x[i + 1], within each tile around in a circle.
__global__ void neighbors(const int* x, int* y, int n) {
  __shared__ int tile[TILE];
  const int t = threadIdx.x, step = gridDim.x * TILE;
  int i = blockIdx.x * TILE + t;
  tile[t] = x[i];
  for (; i < n; i += step) {
    __syncthreads();  // the tile is complete
    y[i] = tile[(t + TILE - 1) % TILE] + tile[t] + tile[(t + 1) % TILE];
    if (i + step < n) tile[t] = x[i + step];
  }
}

int main() {
  const int n = 12 * TILE;
  std::vector<int> x(n), y(n);
  for (int i = 0; i < n; ++i) x[i] = i * 31 % 101;
  int *x_device, *y_device;
  cudaMalloc(&x_device, n * sizeof(int));
  cudaMalloc(&y_device, n * sizeof(int));
  cudaMemcpy(x_device, x.data(), n * sizeof(int), cudaMemcpyHostToDevice);

  neighbors<<<3, TILE>>>(x_device, y_device, n);
  cudaMemcpy(y.data(), y_device, n * sizeof(int), cudaMemcpyDeviceToHost);

  int wrong = 0;
  for (int i = 0; i < n; ++i) {
    const int first = i / TILE * TILE, t = i % TILE;
    wrong += y[i] != x[first + (t + TILE - 1) % TILE] + x[i] + x[first + (t + 1) % TILE];
  }
  std::printf("scheduling_bug: %d wrong: %s\n", wrong, wrong == 0 ? "PASS" : "FAIL");
  cudaFree(x_device);
  cudaFree(y_device);
  return wrong == 0 ? 0 : 1;
}
