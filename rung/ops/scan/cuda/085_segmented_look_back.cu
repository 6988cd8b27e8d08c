// SPDX-License-Identifier: Apache-2.0
// scan / segmented look-back
//
// Idea     a value and a flag that says whether a segment began: pairs of these are combined as
//          associatively as the values themselves, so that segments cross tiles, warps and lanes
//          like anything else. The operation is a run-time one.
// Changes  against decoupled_look_back: segments, and all operations, for the price of a flag and
//          a switch a step. Offsets become a bitmap first, an eighth of a byte an element.
// Cost     each element read and written once, and a bit of the bitmap; three small launches.
// Limits   none: the general rung.
// Source   G. Blelloch, Prefix Sums and Their Applications, 1990, section 1.5.
#include "rung/ops/scan/cuda/detail/launch_look_back.hpp"

namespace rung {
namespace {
using namespace scan_cuda;

void run(const Scan::Args& args, Context& context) {
  if (args.y.empty()) return;
  visit_scanned(args.x.dtype, [&]<class T>() {
    launch_look_back(context, segmented_policy<T>(args), lines_of<T>(args), args.exclusive,
                     head_words(args), [&](unsigned* heads) { mark_heads(context, args, heads); });
  });
}

double estimate(const Scan::Args& args, const Context& context) {
  return 1e-6 + 1.25 * look_back_seconds(args, context);
}

const Rung<Scan> self{{.name = "segmented_look_back",
                       .step = 85,
                       .after = "decoupled_look_back",
                       .backend = device_backend,
                       .estimate = estimate,
                       .run = run}};
}  // namespace
}  // namespace rung
