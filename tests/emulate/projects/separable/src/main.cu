// SPDX-License-Identifier: Apache-2.0
// Launches the kernel of another file and reads its variables.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "forces.cuh"

int main(int argc, char** argv) {
  const int n = argc > 1 ? std::atoi(argv[1]) : 100;
  choose_settings(1.0f, 0.5f);
  std::vector<float> start(n, 1.0f);
  float *positions, *speeds;
  cudaMalloc(&positions, n * sizeof(float));
  cudaMalloc(&speeds, n * sizeof(float));
  cudaMemcpy(positions, start.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemset(speeds, 0, n * sizeof(float));
  for (int i = 0; i < 3; ++i) step<<<(n + 31) / 32, 32>>>(positions, speeds, n);
  int steps = 0;
  cudaMemcpyFromSymbol(&steps, steps_done, sizeof steps);
  cudaMemcpy(start.data(), positions, n * sizeof(float), cudaMemcpyDeviceToHost);
  std::printf("%d steps, %.4f\n", steps, start[n - 1]);
  cudaFree(positions);
  cudaFree(speeds);
  return steps == 3 && start[n - 1] == start[0] ? 0 : 1;
}
