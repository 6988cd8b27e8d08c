// SPDX-License-Identifier: Apache-2.0
// pool_backward / threads
//
// Idea     A team divides the rows of dx into equal shares. Rows are independent and each is summed
//          in a fixed order, so the bits do not depend on the number of threads.
// Changes  Against gather_rows: every core.
// Cost     As gather_rows.
// Limits   None.
#include "rung/cpu/team.hpp"
#include "rung/ops/pool_backward/cpu/detail/gather.hpp"

namespace rung {
namespace {
using namespace pool_backward_cpu;

Work work(const PoolBackward::Args& args, const Context& context) {
  return facts(args, threads_of(args, context));
}

void run(const PoolBackward::Args& args, Context& context) {
  const GatherLines lines(args);
  const int threads = threads_of(args, context);
  const std::size_t own = lines.bytes(args.dx.dtype);
  auto* const scratch =
      static_cast<std::byte*>(context.workspace(own * static_cast<std::size_t>(threads)));
  cpu::run_shares(threads, [&](const cpu::Team& team) {
    gather_rows(args, team.share(lines.units),
                scratch + own * static_cast<std::size_t>(team.rank()));
  });
}

const Rung<PoolBackward> self{
    {.name = "threads", .step = 30, .after = "gather_rows", .work = work, .run = run}};

}  // namespace
}  // namespace rung
