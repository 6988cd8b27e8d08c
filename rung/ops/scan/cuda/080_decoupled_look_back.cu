// SPDX-License-Identifier: Apache-2.0
// scan / decoupled look-back
//
// Idea     one kernel, one pass. Each block publishes the total of its tile as soon as it knows it,
//          then looks back at what the tiles before it have published, until it knows all that
//          is before; then it scans the tile, which has waited in registers. Blocks take their
//          tiles from a counter, so that every tile before one's own has been started.
// Changes  against grid_barrier: nobody waits for all. The order in which totals are combined is
//          that of a tree of degree 32, whatever has been published first. The kernel is in
//          080_decoupled_look_back.cuh, as functors of scan.cuh run in it too.
// Cost     each element read and written once; 8 to 16 bytes of status for each tile of 16 or 32
//          KiB, which a small launch clears first. Lines of one tile need neither.
// Limits   sums without segments; any strides and types. Elements that are not adjacent are
//          moved one by one. About one memory latency a tile is spent waiting; other blocks of the
//          SM fill it.
// Source   D. Merrill & M. Garland, Single-pass Parallel Prefix Scan with Decoupled Look-back,
//          2016.
#include "rung/ops/scan/cuda/080_decoupled_look_back.cuh"

namespace rung {
namespace {
using namespace scan_cuda;

void run(const Scan::Args& args, Context& context) {
  if (args.y.empty()) return;
  visit_scanned(args.x.dtype, [&]<class T>() {
    launch_look_back(context, sum_policy<T>(), lines_of<T>(args), args.exclusive);
  });
}

Support supports(const Scan::Args& args, const Context&) { return supports_sum(args); }

Work work(const Scan::Args& args, const Context&) {
  Work work;
  visit_scanned(args.x.dtype, [&]<class T>() { work = look_back_work<Sum<T>>(args); });
  return work;
}

const Rung<Scan> self{{.name = "decoupled_look_back",
                       .step = 80,
                       .after = "grid_barrier",
                       .backend = device_backend,
                       .supports = supports,
                       .passes = {.loads = 1, .stores = 1},
                       .work = work,
                       .run = run}};
}  // namespace
}  // namespace rung
