// SPDX-License-Identifier: Apache-2.0
// norm_backward / threads
//
// Idea     Chunks of rows are split over the threads; after a barrier each thread adds up some
//          columns of the chunks' sums, in the order of the chunks.
// Changes  Against simd: all cores, with bitwise equal results.
// Cost     Same as simd; the cores share the memory bandwidth.
// Limits   Contiguous rows.
#include "rung/ops/norm_backward/cpu/detail/call.hpp"

namespace rung {
namespace {
using namespace norm_backward_cpu;

Work work(const NormBackward::Args& args, const Context& context) {
  return facts(args, context.threads());
}

void run(const NormBackward::Args& args, Context& context) {
  const GradientCall call(args, context);
  const int threads = call.rows * call.n < min_elements ? 1 : context.threads();
  const auto ranks = call.wants_sums() ? cpu::Ranks::concurrent : cpu::Ranks::independent;
  cpu::run_ranks(ranks, threads, [&](const cpu::Team& team) {
    chunks_of_rows(call, team.share(call.chunks));
    if (!call.wants_sums()) return;
    team.wait();
    sums_of_columns(call, team.share(call.n));
  });
}

const Rung<NormBackward> self{{.name = "threads",
                               .step = 30,
                               .after = "simd",
                               .supports = norm_backward_cpu::supports,
                               .work = work,
                               .run = run}};

}  // namespace
}  // namespace rung
