// SPDX-License-Identifier: Apache-2.0
// softmax_backward / threads
//
// Idea     A team of threads shares the rows; rows longer than 65536 elements are shared piece by
//          piece, one row after another.
// Changes  Against row_pipeline: the same kernel on every core. Pieces follow from the shape alone
//          and are combined in one order: any number of threads gives the same bits.
// Cost     As row_pipeline; the cores share the memory bandwidth.
// Limits   Waking a thread costs microseconds: calls of fewer than 32768 elements stay on one.
#include "rung/ops/softmax_backward/cpu/detail/kernel.hpp"

namespace rung {
namespace {

int threads_of(const SoftmaxBackward::Args& args, const Context& context) {
  return cpu::row_threads(args.length() * args.count(), context.threads());
}

Work work(const SoftmaxBackward::Args& args, const Context& context) {
  return cpu::row_facts(args.rows, args.y.dtype, threads_of(args, context));
}

void run(const SoftmaxBackward::Args& args, Context& context) {
  using namespace softmax_backward_cpu;
  if (args.empty()) return;
  const cpu::RowTeam rows = divide(args, context, threads_of(args, context));
  RowKernel* const kernel = row_pipeline(args);
  cpu::run_ranks(rows.ranks(), rows.threads,
                 [&](const cpu::Team& team) { kernel(args, rows, team); });
}

const Rung<SoftmaxBackward> self{
    {.name = "threads", .step = 40, .after = "row_pipeline", .work = work, .run = run}};

}  // namespace
}  // namespace rung
