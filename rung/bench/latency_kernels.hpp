// SPDX-License-Identifier: Apache-2.0
// Kernels that measure latencies and atomic additions of a GPU; in a header, so that a test can run
// them in the simulator.
#pragma once

#include "rung/bench/chain.hpp"
#include "rung/device/device.hpp"

namespace rung::bench {

/// Words per line of a chain. A chain is a cycle through all lines of a buffer: the first word of
/// each line is the index of the next line's first word.
constexpr unsigned words_per_line = 32;  // 128 bytes

__global__ void link_chain(unsigned* chain, unsigned lines) {
  const unsigned step = gridDim.x * blockDim.x;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < lines; i += step) {
    chain[std::size_t{i} * words_per_line] = line_after(i, lines) * words_per_line;
  }
}

/// Step along a chain by a load. AtomicAdd: step by an atomic addition.
struct Load {
  __device__ unsigned operator()(unsigned* p) const { return *p; }
};
struct AtomicAdd {
  unsigned zero;  // a run-time value: the compiler would turn an addition of 0 into a load
  __device__ unsigned operator()(unsigned* p) const { return atomicAdd(p, zero); }
};

struct Walk {
  unsigned at;              // index of the first word; on return, of the last
  long long cycles;         // of the timed steps
  long long cycles_in_all;  // with the warm-up
};

/// Follows a chain for `warm_up` steps, then for `steps` timed steps. A step is an access and the
/// multiply-add that computes its address.
template <class Next>
__device__ void follow(unsigned* chain, unsigned warm_up, unsigned steps, Next next, Walk* walk) {
  unsigned at = walk->at;
  const long long start = clock64();
  for (unsigned i = 0; i < warm_up; ++i) at = next(chain + at);
  // Delays the reading of the clock until the address is loaded: the condition never holds.
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

/// Times `steps` dependent multiply-adds of one thread.
__global__ void multiply_add_chain(float factor, unsigned steps, float* result, Walk* walk) {
  float sum = factor;
  const long long begin = clock64();
#pragma unroll 8
  for (unsigned i = 0; i < steps; ++i) sum = sum * factor + factor;
  *result = sum;
  const long long end = clock64();
  *walk = {0, end - begin, end - begin};
}

/// Adds `value` to one word per thread (spread 1), or to one word for all threads (spread 0).
__global__ void add_to_global_memory(unsigned* sums, unsigned spread, unsigned value, int turns) {
  unsigned* mine = sums + std::size_t{blockIdx.x * blockDim.x + threadIdx.x} * spread;
  for (int i = 0; i < turns; ++i) atomicAdd(mine, value);
}

constexpr int atomic_block = 256;
struct SharedSums {
  unsigned of_thread[atomic_block];
};

/// Adds in the shared memory of each block of atomic_block threads, as add_to_global_memory() does
/// in global memory; then stores the sum of the block's words.
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
