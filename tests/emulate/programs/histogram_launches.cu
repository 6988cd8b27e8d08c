// SPDX-License-Identifier: Apache-2.0
// A histogram that moves on from launch to launch. With -D FULL_SIZE 1212 launches, over windows of
// 4 MiB in 64 MiB (docs/simulated-gpu.md, "How fast").
#include <vector>

#include "check.cuh"

constexpr int bins = 64;

__global__ void count_window(const unsigned char* data, int bytes, unsigned* histogram) {
  __shared__ unsigned table[bins];
  if (threadIdx.x < bins) table[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < bytes; i += blockDim.x * gridDim.x) {
    atomicAdd(&table[data[i] >> 2], 1);
  }
  __syncthreads();
  if (threadIdx.x < bins) atomicAdd(&histogram[threadIdx.x], table[threadIdx.x]);
}
__global__ void add_up(unsigned* histogram, unsigned long long* all) {
  all[threadIdx.x] += histogram[threadIdx.x];
  histogram[threadIdx.x] = 0;
}

int main() {
#ifdef FULL_SIZE
  const int bytes = 64 << 20, window = 4 << 20, steps = 606, blocks = 64;
#else
  record_first_launches(8);
  const int bytes = 1 << 14, window = 1 << 12, steps = 40, blocks = 2;
#endif
  Array<unsigned char> data(bytes);
  Array<unsigned> histogram(bins);
  Array<unsigned long long> all(bins);
  unsigned state = 1;
  for (int i = 0; i < bytes; ++i) {
    state = state * 1664525 + 1013904223;
    data[i] = static_cast<unsigned char>(state >> 24);
  }
  data.up();
  std::vector<unsigned long long> expected(bins);
  for (int step = 0; step < steps; ++step) {
    const int first = static_cast<int>(step * 7919ll * 64 % (bytes - window));
    for (int i = first; i < first + window; ++i) ++expected[data[i] >> 2];
    count_window<<<blocks, 256>>>(data.device + first, window, histogram.device);
    add_up<<<1, bins>>>(histogram.device, all.device);
  }
  all.down();
  for (int bin = 0; bin < bins; ++bin) CHECK(all[bin] == expected[bin]);
  return ok();
}
