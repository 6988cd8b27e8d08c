// SPDX-License-Identifier: Apache-2.0
// histogram / compare-and-swap loop
//
// Idea     an atomic addition built from atomicCAS: load the count, store count + 1 if it is
//          unchanged, else retry with the new count. Any function of one word can be made atomic
//          this way.
// Changes  against lock: no lock and no fence, and a thread per element on all SMs. The count
//          itself reveals a competing update; of competing threads one always succeeds (lock-free).
// Cost     a load and an atomic per element without contention. Of 32 lanes in one bin, one
//          succeeds per round: 32 rounds and 528 attempts instead of 32 additions.
// Limits   f32 and u8, bins of equal width; 65,536 elements, since all may contend for one bin.
// Source   CUDA C++ Programming Guide, "Atomic functions".
#include "rung/ops/histogram/cuda/detail/histogram.hpp"

namespace rung {
namespace {
using namespace histogram_cuda;

constexpr int threads = 256;

template <class Word, class T, class Bins>
__global__ void __launch_bounds__(threads)
    histogram_cas_loop(Elements<T> x, Bins bins, Word* counts, std::int64_t stride) {
  const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i >= x.size()) return;
  const std::int32_t bin = bins(x[i]);
  if (bin < 0) return;
  Word* const count = counts + bin * stride;
  Word seen = *count;  // may be stale: atomicCAS checks it
  Word assumed;
  do {
    assumed = seen;
    seen = atomicCAS(count, assumed, assumed + 1);
  } while (seen != assumed);
}

void run(const Histogram::Args& args, Context& context) {
  clear_counts(args, context);
  visit_taught(args, [&]<class T, class Bins>(const Elements<T>& x, const Bins& bins) {
    visit_count_words(args, [&]<class Word>(Word* counts) {
      launch(context, {.grid = ceil_div(args.size(), threads), .block = threads},
             histogram_cas_loop<Word, T, Bins>, x, bins, counts, args.counts.strides[0]);
    });
  });
}

const Rung<Histogram> self{{.name = "cas_loop",
                            .step = 7,
                            .after = "lock",
                            .backend = device_backend,
                            .teaching = true,
                            .supports = supports_competing,
                            .passes = {.loads = 1, .stores = 1},
                            .run = run}};
}  // namespace
}  // namespace rung
