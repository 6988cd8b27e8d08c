// SPDX-License-Identifier: Apache-2.0
// Sums, prefix sums and histograms, from the textbook's first to its last.
#pragma once

#include "buffers.cuh"

template <class Tree>
__device__ void reduce_block(const float* in, float* out, Tree tree) {
  __shared__ float words[threads];
  words[threadIdx.x] = in[global_thread()];
  __syncthreads();
  tree(words);
  if (threadIdx.x == 0) out[blockIdx.x] = words[0];
}

/// Ever fewer lanes of every warp.
__global__ void reduce_divergent(const float* in, float* out) {
  reduce_block(in, out, [](float* words) {
#pragma unroll 1
    for (int apart = 1; apart < blockDim.x; apart *= 2) {
      if (threadIdx.x % (2 * apart) == 0) words[threadIdx.x] += words[threadIdx.x + apart];
      __syncthreads();
    }
  });
}

/// Whole warps, whose lanes meet in ever fewer banks.
__global__ void reduce_strided(const float* in, float* out) {
  reduce_block(in, out, [](float* words) {
#pragma unroll 1
    for (int apart = 1; apart < blockDim.x; apart *= 2) {
      const int at = 2 * apart * threadIdx.x;
      if (at < blockDim.x) words[at] += words[at + apart];
      __syncthreads();
    }
  });
}

__global__ void reduce_sequential(const float* in, float* out) {
  reduce_block(in, out, [](float* words) {
#pragma unroll 1
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
      if (threadIdx.x < half) words[threadIdx.x] += words[threadIdx.x + half];
      __syncthreads();
    }
  });
}

__global__ void reduce_by_shuffles(const float* in, float* out) {
  __shared__ float warps[threads / 32];
  float sum = in[global_thread()];
  for (int apart = 16; apart > 0; apart /= 2) sum += __shfl_down_sync(~0u, sum, apart);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x >= threads / 32) return;
  sum = warps[threadIdx.x];
  for (int apart = threads / 64; apart > 0; apart /= 2) {
    sum += __shfl_down_sync((1u << threads / 32) - 1, sum, apart);
  }
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

/// Every element adds up all those up to `apart` before it: all threads, every round.
__global__ void scan_hillis_steele(const float* in, float* out) {
  __shared__ float words[2][threads];
  int from = 0;
  words[0][threadIdx.x] = in[global_thread()];
  __syncthreads();
#pragma unroll 1
  for (int apart = 1; apart < threads; apart *= 2) {
    float sum = words[from][threadIdx.x];
    if (threadIdx.x >= apart) sum += words[from][threadIdx.x - apart];
    words[1 - from][threadIdx.x] = sum;
    from = 1 - from;
    __syncthreads();
  }
  out[global_thread()] = words[from][threadIdx.x];
}

/// Up a tree and down again. With a word of padding for each 32 its conflicts are gone.
template <bool padded>
__global__ void scan_blelloch(const float* in, float* out) {
  __shared__ float words[threads + threads / 32];
  const auto place = [](int i) { return padded ? i + i / 32 : i; };
  words[place(threadIdx.x)] = in[global_thread()];
#pragma unroll 1
  for (int apart = 1; apart < threads; apart *= 2) {
    __syncthreads();
    const int at = (threadIdx.x + 1) * 2 * apart - 1;
    if (at < threads) words[place(at)] += words[place(at - apart)];
  }
  __syncthreads();
  if (threadIdx.x == 0) words[place(threads - 1)] = 0;
#pragma unroll 1
  for (int apart = threads / 2; apart > 0; apart /= 2) {
    __syncthreads();
    const int at = (threadIdx.x + 1) * 2 * apart - 1;
    if (at < threads) {
      const float left = words[place(at - apart)];
      words[place(at - apart)] = words[place(at)];
      words[place(at)] += left;
    }
  }
  __syncthreads();
  out[global_thread()] = words[place(threadIdx.x)];
}

constexpr int bins = 256;

__global__ void histogram_global(const int* numbers, unsigned* histogram) {
  atomicAdd(&histogram[numbers[global_thread()] % bins], 1u);
}

__global__ void histogram_shared(const int* numbers, unsigned* histogram) {
  __shared__ unsigned own[bins];
  own[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&own[numbers[global_thread()] % bins], 1u);
  __syncthreads();
  atomicAdd(&histogram[threadIdx.x], own[threadIdx.x]);
}

/// The halo's two elements are copied by two of the lanes.
__global__ void stencil_shared(const float* in, float* out) {
  __shared__ float words[threads + 2];
  const int i = global_thread() + 1;
  words[threadIdx.x + 1] = in[i];
  if (threadIdx.x == 0) words[0] = in[i - 1];
  if (threadIdx.x == threads - 1) words[threads + 1] = in[i + 1];
  __syncthreads();
  out[i] = words[threadIdx.x] + words[threadIdx.x + 1] + words[threadIdx.x + 2];
}

inline void run_reductions(const Buffers& b) {
  constexpr int blocks = count / threads;
  auto* const histogram = reinterpret_cast<unsigned*>(b.out);
  reduce_divergent<<<blocks, threads>>>(b.in, b.out);
  reduce_strided<<<blocks, threads>>>(b.in, b.out);
  reduce_sequential<<<blocks, threads>>>(b.in, b.out);
  reduce_by_shuffles<<<blocks, threads>>>(b.in, b.out);
  scan_hillis_steele<<<blocks, threads>>>(b.in, b.out);
  scan_blelloch<false><<<blocks, threads>>>(b.in, b.out);
  scan_blelloch<true><<<blocks, threads>>>(b.in, b.out);
  histogram_global<<<blocks, threads>>>(b.numbers, histogram);
  histogram_shared<<<blocks, threads>>>(b.numbers, histogram);
  stencil_shared<<<blocks, threads>>>(b.in, b.out);
  expect(cudaGetLastError());
}
