// SPDX-License-Identifier: Apache-2.0
// Launches from several host threads at once.
#include <thread>
#include <vector>

#include "check.cuh"

__global__ void add(int* p, int v) { atomicAdd(p, v); }

int main() {
  Array<int> sums(4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&sums, t] {
      for (int i = 0; i < 10; ++i) add<<<2, 32>>>(sums.device + t, t + 1);
      CUDA(cudaGetLastError());
      CUDA(cudaDeviceSynchronize());
    });
  }
  for (std::thread& one : threads) one.join();
  sums.down();
  for (int t = 0; t < 4; ++t) CHECK(sums[t] == 640 * (t + 1));
  return ok();
}
