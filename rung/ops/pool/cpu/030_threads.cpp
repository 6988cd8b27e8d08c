// SPDX-License-Identifier: Apache-2.0
// pool / threads
//
// Idea     A team divides the output rows, of one channel or of all, into equal shares: rows are
//          independent.
// Changes  Against separable: every core.
// Cost     As separable.
// Limits   None; memory-bound beyond the caches.
#include "rung/ops/pool/cpu/detail/kernels.hpp"

namespace rung {
namespace {
using namespace pool_cpu;

Work work(const Pool::Args& args, const Context& context) {
  return facts(args, threads_of(args, context));
}

void run(const Pool::Args& args, Context& context) {
  run_kernel(kernel_for(args), args, context, threads_of(args, context));
}

const Rung<Pool> self{
    {.name = "threads", .step = 30, .after = "separable", .work = work, .run = run}};

}  // namespace
}  // namespace rung
