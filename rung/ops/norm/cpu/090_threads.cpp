// SPDX-License-Identifier: Apache-2.0
// norm / threads
//
// Idea     Rows are split evenly over the threads; a few long rows are split by blocks: statistics
//          of the blocks, a barrier, then y. Blocks do not depend on the threads, so results are
//          bitwise equal for any number of threads.
// Changes  Against row_pipeline: all cores.
// Cost     Same as row_pipeline; the cores share the memory bandwidth.
// Limits   Waking a thread costs microseconds: problems of fewer than 32768 elements use one
//          thread.
#include "rung/ops/norm/cpu/detail/call.hpp"

namespace rung {
namespace {

Work work(const Norm::Args& args, const Context& context) {
  return norm_cpu::row_pipeline_facts(args, context.threads());
}

void run(const Norm::Args& args, Context& context) {
  const norm_cpu::RowPipeline call(args, context, context.threads());
  const auto ranks = call.shares_rows ? cpu::Ranks::concurrent : cpu::Ranks::independent;
  cpu::run_ranks(ranks, call.threads, [&](const cpu::Team& team) { call.kernel(call, team); });
}

const Rung<Norm> self{
    {.name = "threads", .step = 90, .after = "row_pipeline", .work = work, .run = run}};

}  // namespace
}  // namespace rung
