// SPDX-License-Identifier: Apache-2.0
// elementwise / strided
//
// Idea     any strides and any broadcasting, at nearly the speed of simd: axes are merged to as few
//          as will do, and pieces of 4 KiB are brought into L1 in the order that the vector kernel
//          wants. What already lies so - most operands, usually - is used where it is. Short rows
//          come many at a time: one that repeats is written out once for all pieces, an element
//          that repeats along its row is a vector store.
// Changes  against simd: takes every layout. Indices are counted, not divided for.
// Cost     as simd, and for an operand with a stride one more pass through L1.
// Limits   one thread. An operand whose rows run across z's uses 4 bytes of each cache line it
//          touches; the other 60 are still there when the next row wants them as long as one
//          line for each element of a row fits in L2.
// Source   the iterators of NumPy ("nditer"), which merge axes and buffer likewise.
#include "rung/ops/elementwise/cpu/detail/estimate.hpp"
#include "rung/ops/elementwise/cpu/detail/visit.hpp"

namespace rung {
namespace {

double estimate(const Elementwise::Args& args, const Context&) {
  return 1.1 * elementwise_cpu::one_core_seconds(args);
}

void run(const Elementwise::Args& args, Context&) {
  elementwise_cpu::with_runs(args, false, [&](const auto& runs) { runs.compute(0, args.size()); });
}

const Rung<Elementwise> self{
    {.name = "strided", .step = 30, .after = "simd", .estimate = estimate, .run = run}};

}  // namespace
}  // namespace rung
