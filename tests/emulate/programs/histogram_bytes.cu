// SPDX-License-Identifier: Apache-2.0
// A histogram of bytes in shared memory, a table for each warp. With -D FULL_SIZE of 64 MiB
// (docs/simulated-gpu.md, "How fast").
#include <vector>

#include "check.cuh"

constexpr int warps = 6, bins = 256;

__global__ void count_bytes(const unsigned* data, int words, unsigned* partial) {
  __shared__ unsigned tables[warps][bins];
  for (int i = threadIdx.x; i < warps * bins; i += blockDim.x) (&tables[0][0])[i] = 0;
  __syncthreads();
  unsigned* const mine = tables[threadIdx.x / 32];
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += blockDim.x * gridDim.x) {
    const unsigned word = data[i];
    atomicAdd(&mine[word & 0xff], 1);
    atomicAdd(&mine[word >> 8 & 0xff], 1);
    atomicAdd(&mine[word >> 16 & 0xff], 1);
    atomicAdd(&mine[word >> 24], 1);
  }
  __syncthreads();
  for (int bin = threadIdx.x; bin < bins; bin += blockDim.x) {
    unsigned sum = 0;
    for (int warp = 0; warp < warps; ++warp) sum += tables[warp][bin];
    partial[blockIdx.x * bins + bin] = sum;
  }
}
__global__ void merge(const unsigned* partial, int count, unsigned* histogram) {
  __shared__ unsigned sums[bins];
  unsigned sum = 0;
  for (int i = threadIdx.x; i < count; i += blockDim.x) sum += partial[i * bins + blockIdx.x];
  sums[threadIdx.x] = sum;
  for (int stride = bins / 2; stride > 0; stride /= 2) {
    __syncthreads();
    if (threadIdx.x < stride) sums[threadIdx.x] += sums[threadIdx.x + stride];
  }
  if (threadIdx.x == 0) histogram[blockIdx.x] = sums[0];
}

int main() {
#ifdef FULL_SIZE
  const int words = 16 << 20, blocks = 240;
#else
  const int words = 1 << 12, blocks = 4;
#endif
  Array<unsigned> data(words), partial(blocks * bins), histogram(bins);
  std::vector<unsigned> expected(bins);
  unsigned state = 1;
  for (int i = 0; i < words; ++i) {
    data[i] = state = state * 1664525 + 1013904223;
    for (int shift = 0; shift < 32; shift += 8) ++expected[state >> shift & 0xff];
  }
  data.up();
  count_bytes<<<blocks, 32 * warps>>>(data.device, words, partial.device);
  merge<<<bins, bins>>>(partial.device, blocks, histogram.device);
  histogram.down();
  for (int bin = 0; bin < bins; ++bin) CHECK(histogram[bin] == expected[bin]);
  return ok();
}
