// SPDX-License-Identifier: Apache-2.0
// pool_backward / threads
//
// Idea     rows of dx are divided among the threads in equal shares: none depends on another, and
//          each is added up in one order, so that the bits do not depend on the threads.
// Changes  against gather_rows: all cores.
// Cost     as gather_rows.
// Limits   every valid call.
// Tried    -
// Source   -
#include "rung/ops/pool_backward/cpu/detail/call.hpp"

namespace rung {
namespace {

double estimate(const PoolBackward::Args& args, const Context&) {
  return pool_backward_cpu::seconds(args);
}

void run(const PoolBackward::Args& args, Context& context) {
  pool_backward_cpu::gather_on(args, context, context.threads());
}

const Rung<PoolBackward> self{
    {.name = "threads", .step = 30, .after = "gather_rows", .estimate = estimate, .run = run}};

}  // namespace
}  // namespace rung
