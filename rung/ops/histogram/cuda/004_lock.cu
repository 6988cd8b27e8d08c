// SPDX-License-Identifier: Apache-2.0
// histogram / lock
//
// Idea     one block, and a lock per bin: a thread spins until atomicCAS changes the lock from 0 to
//          1, increments the count by a load and a store, and releases the lock. Fences order the
//          load after the acquire and the store before the release.
// Changes  baseline.
// Cost     per element two atomics, two fences, a load and a store in global memory, serialized;
//          while one thread holds the lock, others spin: 32 lanes of one bin take 32 rounds and 32
//          + 31 + ... + 1 = 528 attempts.
// Limits   f32 and u8, bins of equal width; one SM; 65,536 elements. The lanes of a warp spin in
//          one loop with the critical section inside the `if`, so that a lane that holds the lock
//          releases it before others retry. Before compute capability 7.0, a separate spin loop
//          would deadlock.
// Source   J. Sanders and E. Kandrot, CUDA by Example, appendix A.
#include "rung/ops/histogram/cuda/detail/histogram.hpp"

namespace rung {
namespace {
using namespace histogram_cuda;

constexpr int threads = 256;

__global__ void __launch_bounds__(threads) histogram_lock_clear(unsigned* locks, std::int32_t n) {
  const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i < n) locks[i] = 0;
}

template <class Word, class T, class Bins>
__global__ void __launch_bounds__(threads)
    histogram_lock(Elements<T> x, Bins bins, Word* counts, std::int64_t stride, unsigned* locks) {
  for (std::int64_t i = threadIdx.x; i < x.size(); i += threads) {
    const std::int32_t bin = bins(x[i]);
    bool done = bin < 0;
    while (!done) {
      if (atomicCAS(&locks[bin], 0, 1) == 0) {
        __threadfence();  // acquire: makes the last holder's store visible
        counts[bin * stride] += 1;
        __threadfence();  // release: the count is visible before the lock is free
        atomicExch(&locks[bin], 0);
        done = true;
      }
    }
  }
}

void run(const Histogram::Args& args, Context& context) {
  const auto bins = static_cast<std::int32_t>(args.bins());
  auto* const locks = static_cast<unsigned*>(
      context.workspace(static_cast<std::size_t>(args.bins()) * sizeof(unsigned)));
  launch(context, {.grid = ceil_div(args.bins(), threads), .block = threads}, histogram_lock_clear,
         locks, bins);
  clear_counts(args, context);
  visit_taught(args, [&]<class T, class Bins>(const Elements<T>& x, const Bins& in_bins) {
    visit_count_words(args, [&]<class Word>(Word* counts) {
      launch(context, {.grid = 1, .block = threads}, histogram_lock<Word, T, Bins>, x, in_bins,
             counts, args.counts.strides[0], locks);
    });
  });
}

const Rung<Histogram> self{{.name = "lock",
                            .step = 4,
                            .backend = device_backend,
                            .teaching = true,
                            .supports = supports_competing,
                            .passes = {.loads = 1, .stores = 1},
                            .run = run}};
}  // namespace
}  // namespace rung
