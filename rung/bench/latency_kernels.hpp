// SPDX-License-Identifier: Apache-2.0
// Kernels that measure latencies and atomic additions of a GPU. In a header, so that the simulated
// GPU runs them in a test.
#pragma once

#include "rung/bench/chain.hpp"
#include "rung/device/device.hpp"

namespace rung::bench {

/// A chain is a cycle through all lines of a buffer: the first word of each line is the index of
/// the next line's first word.
constexpr unsigned words_per_line = 32;  // 128 bytes

__global__ void link_chain(unsigned* chain, unsigned lines) {
  const unsigned step = gridDim.x * blockDim.x;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < lines; i += step) {
    chain[std::size_t{i} * words_per_line] = line_after(i, lines) * words_per_line;
  }
}

/// Steps of one thread along a chain: a load, or an atomic addition.
struct Load {
  __device__ unsigned operator()(unsigned* p) const { return *p; }
};
struct AtomicAdd {
  unsigned zero;  // not known to the compiler, which would make a load of it
  __device__ unsigned operator()(unsigned* p) const { return atomicAdd(p, zero); }
};

struct Walk {
  unsigned at;              // the word to begin with; then the one where the walk ended
  long long cycles;         // of the steps that count
  long long cycles_in_all;  // with the steps before them
};

/// Goes `warm_up` steps along a chain, then `steps` that are timed. A step is an access and the
/// multiply-add that makes its address.
template <class Next>
__device__ void follow(unsigned* chain, unsigned warm_up, unsigned steps, Next next, Walk* walk) {
  unsigned at = walk->at;
  const long long start = clock64();
  for (unsigned i = 0; i < warm_up; ++i) at = next(chain + at);
  // The clock is read when the address is known: the condition never holds, but depends on it.
  if (at == ~0u) walk->cycles = 0;
  const long long begin = clock64();
#pragma unroll 8
  for (unsigned i = 0; i < steps; ++i) at = next(chain + at);
  if (at == ~0u) walk->cycles = 0;
  const long long end = clock64();
  *walk = {at, end - begin, end - start};
}

template <class Next>
__global__ void follow_in_global_memory(unsigned* chain, unsigned warm_up, unsigned steps,
                                        Next next, Walk* walk) {
  follow(chain, warm_up, steps, next, walk);
}

constexpr unsigned shared_lines = 64;
struct SharedChain {
  unsigned words[shared_lines * words_per_line];
};

template <class Next>
__global__ void follow_in_shared_memory(unsigned steps, Next next, Walk* walk) {
  SharedChain& chain = shared<SharedChain>();
  for (unsigned i = 0; i < shared_lines; ++i) {
    chain.words[i * words_per_line] = line_after(i, shared_lines) * words_per_line;
  }
  follow(chain.words, shared_lines, steps, next, walk);
}

/// Multiply-adds of one thread, each of which waits for the one before.
__global__ void multiply_add_chain(float factor, unsigned steps, float* result, Walk* walk) {
  float sum = factor;
  const long long begin = clock64();
#pragma unroll 8
  for (unsigned i = 0; i < steps; ++i) sum = sum * factor + factor;
  *result = sum;
  const long long end = clock64();
  *walk = {0, end - begin, end - begin};
}

/// Every thread adds `value` to a word of its own (spread 1), or all of them to one (spread 0).
__global__ void add_to_global_memory(unsigned* sums, unsigned spread, unsigned value, int turns) {
  unsigned* mine = sums + std::size_t{blockIdx.x * blockDim.x + threadIdx.x} * spread;
  for (int i = 0; i < turns; ++i) atomicAdd(mine, value);
}

constexpr int atomic_block = 256;
struct SharedSums {
  unsigned of_thread[atomic_block];
};

/// Adds in the shared memory of each block of atomic_block threads, as add_to_global_memory does in
/// global memory. Writes the sum of all words of each block.
__global__ void add_to_shared_memory(unsigned* sums, unsigned spread, unsigned value, int turns) {
  SharedSums& shared_sums = shared<SharedSums>();
  shared_sums.of_thread[threadIdx.x] = 0;
  __syncthreads();
  unsigned* mine = shared_sums.of_thread + threadIdx.x * spread;
  for (int i = 0; i < turns; ++i) atomicAdd(mine, value);
  __syncthreads();
  if (threadIdx.x != 0) return;
  unsigned sum = 0;
  for (int i = 0; i < atomic_block; ++i) sum += shared_sums.of_thread[i];
  sums[blockIdx.x] = sum;
}

}  // namespace rung::bench
