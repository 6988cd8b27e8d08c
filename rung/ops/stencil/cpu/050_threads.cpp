// SPDX-License-Identifier: Apache-2.0
// stencil / threads
//
// Idea     A team of threads partitions the tiles of each pass; each thread runs simd's kernel on
//          its tiles, or line_sums' kernel if the window is large.
// Changes  Against simd and line_sums: the same kernels on every core.
// Cost     As simd and line_sums; the memory bus is shared.
// Limits   Waking the team takes microseconds: small problems run on one thread.
#include "rung/cpu/worth.hpp"
#include "rung/ops/stencil/cpu/detail/passes.hpp"

namespace rung {
namespace {
using namespace stencil_cpu;

/// Returns the operations of one iteration: a constant per element plus a term per tap of the mask
/// or of its vectors.
double operations_of(const Stencil::Args& args) {
  const double taps = args.is_separable()
                          ? 2.0 * (args.depth().taps + args.rows().taps + args.columns().taps)
                          : args.taps();
  const double wide = args.x.dtype == DType::f64 ? 2 : 1;
  return static_cast<double>(args.elements()) * wide * (28 + taps);
}
int threads_of(const Stencil::Args& args, const Context& context) {
  return cpu::threads_worth(operations_of(args), 625e3, context.threads());
}

Work work(const Stencil::Args& args, const Context& context) {
  return {.bytes = Stencil::cost(args).bytes * args.iterations,
          .operations = operations_of(args) * args.iterations,
          .threads = threads_of(args, context)};
}

void run(const Stencil::Args& args, Context& context) {
  const int threads = threads_of(args, context);
  for_each_pass(args, context, threads, [&]<class S>(const Args& pass, S* scratch) {
    cpu::run_shares(threads, [&](const cpu::Team& team) {
      const cpu::Range tiles = team.share(tiles_of<S>(pass).count());
      S* const own = scratch + team.rank() * scratch_elements<S>(pass);
      if (tiles.size() == 0) return;
      is_large_window(pass) ? sum_tiles(pass, tiles, own) : weigh_tiles(pass, tiles, own);
    });
  });
}

const Rung<Stencil> self{
    {.name = "threads", .step = 50, .after = "simd", .work = work, .run = run}};

}  // namespace
}  // namespace rung
