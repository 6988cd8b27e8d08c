// SPDX-License-Identifier: Apache-2.0
// An energy that is loaded, raised and stored in lines of its own.
#include "check.cuh"

__global__ void deposit(const float* charge, const int* cell, float* grid, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int c = cell[i];
#ifdef BUG
  float old = grid[c];
  grid[c] = old + charge[i];
#else
  atomicAdd(&grid[c], charge[i]);
#endif
}

int main() {
  const int n = 200, cells = 10;
  Array<float> charge(n), grid(cells);
  Array<int> cell(n);
  float expected[cells] = {};
  for (int i = 0; i < n; ++i) {
    charge[i] = i % 4 + 1, cell[i] = i * 3 % cells;
    expected[cell[i]] += charge[i];
  }
  charge.up(), cell.up();
  deposit<<<2, 128>>>(charge.device, cell.device, grid.device, n);
  grid.down();
  for (int c = 0; c < cells; ++c) CHECK(grid[c] == expected[c]);
  return ok();
}
