// SPDX-License-Identifier: Apache-2.0
// softmax_backward / threads
//
// Idea     Split the rows over a team of threads; rows longer than 65536 elements are split into
//          pieces and processed one row after another.
// Changes  Against row_pipeline: the same kernel on every core. Pieces depend on the shape alone
//          and are combined in a fixed order, so results are bitwise equal for any number of
//          threads.
// Cost     Same as row_pipeline; the cores share the memory bandwidth.
// Limits   Waking a thread costs microseconds: problems of fewer than 32768 elements use one
//          thread.
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
