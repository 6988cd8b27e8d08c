// SPDX-License-Identifier: Apache-2.0
// Measures what rung/bench/bound.cpp knows of a GPU: latencies in cycles of an SM, sectors that L2
// stores per cycle, and cycles between launches of blocks. Prints a line per figure.
//   nvcc -O3 -std=c++17 -arch=native tools/gpu_pace.cu -o gpu_pace && ./gpu_pace
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

void check(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "gpu_pace: %s\n", cudaGetErrorString(status));
  std::exit(1);
}

struct Result {
  long long cycles;
  float value;
};

/// Takes steps along a chain, then as many for the clock.
__global__ void follow(const int* chain, int steps, Result* result) {
  int at = 0;
  for (int i = 0; i < steps; ++i) at = chain[at];
  result->value = static_cast<float>(at);
  const long long begin = clock64();
  for (int i = 0; i < steps; ++i) at = chain[at];
  result->value += static_cast<float>(at);
  result->cycles = clock64() - begin;
}

__global__ void follow_shared(int steps, Result* result) {
  __shared__ int chain[256];
  for (int i = 0; i < 256; ++i) chain[i] = (i + 33) % 256;
  int at = 0;
  const long long begin = clock64();
  for (int i = 0; i < steps; ++i) at = chain[at];
  result->value = static_cast<float>(at);
  result->cycles = clock64() - begin;
}

__global__ void meet(int steps, Result* result) {
  const long long begin = clock64();
  for (int i = 0; i < steps; ++i) __syncthreads();
  if (threadIdx.x == 0) result->cycles = clock64() - begin;
}

__global__ void exchange(int steps, Result* result) {
  float value = static_cast<float>(threadIdx.x);
  const long long begin = clock64();
  for (int i = 0; i < steps; ++i) value = __shfl_xor_sync(~0u, value, 1);
  if (threadIdx.x != 0) return;
  result->value = value;
  result->cycles = clock64() - begin;
}

/// Stores 4 bytes to each sector.
__global__ void store(float* to, int sectors, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < sectors; i += gridDim.x * blockDim.x) {
      to[8 * i] = static_cast<float>(round);
    }
  }
}

__global__ void nothing() {}

/// Seconds of the second of two runs.
template <class Launch>
double seconds_of(Launch launch) {
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin));
  check(cudaEventCreate(&end));
  launch();
  check(cudaEventRecord(begin));
  launch();
  check(cudaEventRecord(end));
  check(cudaEventSynchronize(end));
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, begin, end));
  return milliseconds * 1e-3;
}

template <class Launch>
double cycles_of(int steps, Launch launch) {
  Result* result;
  check(cudaMallocManaged(&result, sizeof(Result)));
  launch(result);
  check(cudaDeviceSynchronize());
  const double cycles = static_cast<double>(result->cycles) / steps;
  check(cudaFree(result));
  return cycles;
}

double chain_cycles(std::size_t bytes, std::size_t stride) {
  const std::size_t lines = bytes / stride;
  std::vector<int> words(bytes / sizeof(int));
  for (std::size_t i = 0; i < lines; ++i) {
    words[i * stride / sizeof(int)] = static_cast<int>((i + 1) % lines * stride / sizeof(int));
  }
  int* chain;
  check(cudaMalloc(&chain, bytes));
  check(cudaMemcpy(chain, words.data(), bytes, cudaMemcpyHostToDevice));
  const int steps = static_cast<int>(lines < 20000 ? lines : 20000);
  const double cycles =
      cycles_of(steps, [&](Result* result) { follow<<<1, 1>>>(chain, steps, result); });
  check(cudaFree(chain));
  return cycles;
}

}  // namespace

int main() {
  cudaDeviceProp gpu;
  check(cudaGetDeviceProperties(&gpu, 0));
  int kilohertz = 0;
  check(cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, 0));
  const double clock = kilohertz * 1e3;
  const int steps = 4096;
  std::printf("%s, %d SMs, at most %.3f GHz\n", gpu.name, gpu.multiProcessorCount, clock * 1e-9);
  std::printf("latency L1 %.1f\n", chain_cycles(16 << 10, 128));
  // 40,000 of 254,200 lines: none is loaded twice.
  std::printf("latency memory %.1f\n", chain_cycles(std::size_t{1} << 30, 4096 + 128));
  std::printf("latency shared %.1f\n",
              cycles_of(steps, [&](Result* r) { follow_shared<<<1, 1>>>(steps, r); }));
  for (const int threads : {32, 128, 256, 512, 1024}) {
    std::printf("barrier of %d warps %.1f\n", threads / 32,
                cycles_of(steps, [&](Result* r) { meet<<<1, threads>>>(steps, r); }));
  }
  std::printf("exchange %.1f\n",
              cycles_of(steps, [&](Result* r) { exchange<<<1, 32>>>(steps, r); }));
  float* array;
  const int sectors = 1 << 19, rounds = 40;
  check(cudaMalloc(&array, std::size_t{sectors} * 32));
  const double storing = seconds_of([&] { store<<<264, 1024>>>(array, sectors, rounds); });
  std::printf("sectors stored per cycle %.1f\n", double{sectors} * rounds / storing / clock);
  check(cudaFree(array));
  check(cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 << 10));
  const int blocks = 1 << 18;
  for (const int threads : {32, 256, 1024}) {
    const double many = seconds_of([&] { nothing<<<blocks, threads>>>(); });
    const double alone = seconds_of([&] { nothing<<<blocks, threads, 200 << 10>>>(); });
    std::printf("blocks of %d warps: %.2f cycles apart; %.0f per block, one at a time in an SM\n",
                threads / 32, many * clock / blocks,
                alone * clock / blocks * gpu.multiProcessorCount);
  }
  return 0;
}
