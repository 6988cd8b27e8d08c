// SPDX-License-Identifier: Apache-2.0
// scan / decoupled look-back
//
// Idea     one kernel, one pass. Each block publishes its tile's total as soon as it is summed,
//          then polls the totals of the tiles before it and scans its tile, which stays in
//          registers. Blocks draw tiles from a counter, which guarantees that all earlier tiles
//          have been started.
// Changes  against grid_barrier: no block waits for all others. Totals are combined as a tree of
//          degree 32, in an order independent of timing. The kernel is in
//          080_decoupled_look_back.cuh, because scan.cuh runs it with user-defined functors.
// Cost     each element read and written once; 8 to 16 bytes of status per tile of 16 or 32 KiB,
//          cleared by a small launch first. Single-tile lines skip both.
// Limits   sums without segments; any strides and types. Strided elements are moved one by one. A
//          tile waits about one memory latency, which other blocks of the SM hide.
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
  return visit_scanned(args.x.dtype, [&]<class T>() { return look_back_work<Sum<T>>(args); });
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
