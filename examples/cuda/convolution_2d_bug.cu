// SPDX-License-Identifier: Apache-2.0
// Bug: the array in shared memory has the size of the output tile, not of the input tile.
// rung emulate: out_of_bounds in line 16
#include <cstdio>
#include <vector>

constexpr int RADIUS = 1, MASK = 2 * RADIUS + 1;
constexpr int INPUT = 16, OUTPUT = INPUT - 2 * RADIUS;
__constant__ float mask[MASK][MASK];

__global__ void convolve(const float* x, float* y, int height, int width) {
  __shared__ float tile[OUTPUT][OUTPUT];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int column = blockIdx.x * OUTPUT + tx - RADIUS, row = blockIdx.y * OUTPUT + ty - RADIUS;
  const bool inside = row >= 0 && row < height && column >= 0 && column < width;
  tile[ty][tx] = inside ? x[row * width + column] : 0;
  __syncthreads();
  const bool inner = tx >= RADIUS && tx < INPUT - RADIUS && ty >= RADIUS && ty < INPUT - RADIUS;
  if (inside && inner) {
    float sum = 0;
    for (int v = 0; v < MASK; ++v) {
      for (int u = 0; u < MASK; ++u) sum += mask[v][u] * tile[ty + v - RADIUS][tx + u - RADIUS];
    }
    y[row * width + column] = sum;
  }
}

int main() {
  const int height = 45, width = 61;
  const float weights[MASK][MASK] = {{1, 2, 1}, {2, 4, 2}, {1, 2, 1}};
  std::vector<float> x(height * width), y(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = i * 7 % 31;
  const size_t bytes = x.size() * sizeof(float);
  float *x_device, *y_device;
  cudaMalloc(&x_device, bytes);
  cudaMalloc(&y_device, bytes);
  cudaMemcpy(x_device, x.data(), bytes, cudaMemcpyHostToDevice);
  cudaMemcpyToSymbol(mask, weights, sizeof(weights));

  const dim3 block(INPUT, INPUT);
  const dim3 grid((width + OUTPUT - 1) / OUTPUT, (height + OUTPUT - 1) / OUTPUT);
  convolve<<<grid, block>>>(x_device, y_device, height, width);
  cudaMemcpy(y.data(), y_device, bytes, cudaMemcpyDeviceToHost);

  int wrong = 0;
  for (int row = 0; row < height; ++row) {
    for (int column = 0; column < width; ++column) {
      float sum = 0;
      for (int v = 0; v < MASK; ++v) {
        for (int u = 0; u < MASK; ++u) {
          const int r = row + v - RADIUS, c = column + u - RADIUS;
          if (r >= 0 && r < height && c >= 0 && c < width) sum += weights[v][u] * x[r * width + c];
        }
      }
      wrong += y[row * width + column] != sum;  // whole numbers: exact
    }
  }
  std::printf("convolution_2d_bug: %d wrong: %s\n", wrong, wrong == 0 ? "PASS" : "FAIL");
  cudaFree(x_device);
  cudaFree(y_device);
  return wrong == 0 ? 0 : 1;
}
