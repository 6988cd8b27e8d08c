// SPDX-License-Identifier: Apache-2.0
// reduce / threads
//
// Idea     everything before, for every call, by a team: rows and columns as they lie in memory,
//          short rows and segments in batches, the rest gathered piece by piece into L1 and folded
//          there.
// Changes  against columns: several threads; f16, bf16 and the small integers are widened on their
//          way through L1; segments and any strides.
// Cost     x read once; 16 bytes for each chunk of 16384 elements or more where threads share a
//          result.
// Limits   every valid call. Strided elements are gathered one by one.
// Bits     cuts follow from shapes and strides, not from the number of threads.
// Tried    on a 2-core Zen 5 vCPU: 16 chains for extremes (0.87 of the fastest peer at 64 MiB,
//          where 8 made 0.96: too few mask registers); lines asked for into L2 (4 MiB: 79 GB/s,
//          into L1 117); two or four pages in parallel in L2 (140 GB/s, one 190); chunks of 16384
//          at 4 and 64 MiB (0.97 of the speed with 32768 and more).
// Source   -
#include "rung/ops/reduce/cpu/detail/engine.hpp"

namespace rung {
namespace {
using namespace reduce_cpu;

double estimate(const Reduce::Args& args, const Context& context) {
  return 1e-7 + Reduce::cost(args).bytes / (40e9 * useful_threads(args, context));
}

void run(const Reduce::Args& args, Context& context) {
  if (reduce_one_row(args)) return;
  const int threads = useful_threads(args, context);
  if (walk_of(args) == Walk::columns) {
    reduce_columns(args, context, threads);
  } else {
    reduce_rows(args, context, threads);
  }
}

const Rung<Reduce> self{
    {.name = "threads", .step = 60, .after = "columns", .estimate = estimate, .run = run}};
}  // namespace
}  // namespace rung
