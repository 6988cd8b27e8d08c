// SPDX-License-Identifier: Apache-2.0
// Instruction scheduling by hand: the load of the next tile is issued before the arithmetic of this
// one, which hides its latency, and kept in a register until no thread reads the tile any more. A
// compiler cannot do this: it moves no load across a barrier.
#include <cstdio>
#include <vector>

constexpr int TILE = 128;

// y[i] = x[i - 1] + x[i] + x[i + 1], within each tile around in a circle.
__global__ void neighbors(const int* x, int* y, int n) {
  __shared__ int tile[TILE];
  const int t = threadIdx.x, step = gridDim.x * TILE;
  int i = blockIdx.x * TILE + t;
  int next = x[i];
  for (; i < n; i += step) {
    tile[t] = next;
    __syncthreads();  // the tile is complete
    if (i + step < n) next = x[i + step];
    y[i] = tile[(t + TILE - 1) % TILE] + tile[t] + tile[(t + 1) % TILE];
    __syncthreads();  // no thread reads it any more
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
  std::printf("scheduling: %d wrong: %s\n", wrong, wrong == 0 ? "PASS" : "FAIL");
  cudaFree(x_device);
  cudaFree(y_device);
  return wrong == 0 ? 0 : 1;
}
