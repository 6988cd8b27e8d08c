// SPDX-License-Identifier: Apache-2.0
// softmax / threads
//
// Idea     a team of threads shares the rows, or blocks of columns; rows longer than 65536 elements
//          are shared piece by piece, one row after another.
// Changes  against row_pipeline: the same kernels on every core. Pieces follow from the shape alone
//          and are combined in one order: any number of threads gives the same bits.
// Cost     as row_pipeline; the cores share the memory bandwidth.
// Limits   waking a thread costs microseconds: calls of fewer than 32768 elements stay on one.
// Source   -
#include "rung/ops/softmax/cpu/detail/estimate.hpp"
#include "rung/ops/softmax/cpu/detail/kernels.hpp"

namespace rung {
namespace {

double estimate(const Softmax::Args& args, const Context& context) {
  return softmax_cpu::seconds(args, softmax_cpu::useful_threads(args, context.threads()));
}

void run(const Softmax::Args& args, Context& context) {
  softmax_cpu::run(args, context, softmax_cpu::useful_threads(args, context.threads()));
}

const Rung<Softmax> self{
    {.name = "threads", .step = 90, .after = "row_pipeline", .estimate = estimate, .run = run}};

}  // namespace
}  // namespace rung
