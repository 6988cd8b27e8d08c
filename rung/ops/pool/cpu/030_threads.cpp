// SPDX-License-Identifier: Apache-2.0
// pool / threads
//
// Idea     output rows, of one image and channel (channels last: of all channels), are divided
//          among the threads in equal shares: none depends on another.
// Changes  against separable: all cores.
// Cost     as separable.
// Limits   every valid call; two cores of one memory are no faster than that.
// Tried    -
// Source   -
#include "rung/ops/pool/cpu/detail/call.hpp"

namespace rung {
namespace {

double estimate(const Pool::Args& args, const Context&) { return pool_cpu::seconds(args); }

void run(const Pool::Args& args, Context& context) {
  pool_cpu::pool_on(args, context, context.threads());
}

const Rung<Pool> self{
    {.name = "threads", .step = 30, .after = "separable", .estimate = estimate, .run = run}};

}  // namespace
}  // namespace rung
