// SPDX-License-Identifier: Apache-2.0
// reduce / threads
//
// Idea     everything before, for every call, by a team: rows and columns as they lie in memory,
//          short rows and segments in batches, the rest gathered piece by piece into L1 and folded
//          there.
// Changes  against columns: several threads; f16, bf16 and the small integers are widened on their
//          way through L1; segments and any strides.
// Cost     x read once; 32 bytes for each chunk of 16384 elements where threads share a result.
// Limits   every valid call. Strided elements are gathered one by one.
// Bits     cuts follow from shapes and strides, not from the number of threads.
// Source   -
#include "rung/ops/reduce/cpu_engine.hpp"

namespace rung {
namespace {
using namespace reduce_cpu;

double estimate(const Reduce::Args& args, const Context& context) {
  return 1e-7 + Reduce::cost(args).bytes / (40e9 * useful_threads(args, context));
}

void run(const Reduce::Args& args, Context& context) {
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
