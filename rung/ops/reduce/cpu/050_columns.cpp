// SPDX-License-Identifier: Apache-2.0
// reduce / columns
//
// Idea     where results are adjacent, vectors run across them: eight rows at a time are taken
//          into a run of up to 4096 results that stays in L1.
// Changes  against the rungs along rows: no gathering of elements per row apart, no putting
//          together of lanes. A sum of 8 rows is made in pairs, and after 512 rows the run goes
//          into f64.
// Cost     x once, in eight streams; 1/8 load and store of the results for each load of x.
// Limits   contiguous results, one thread. Few columns without gaps are taken as fewer, wider rows.
// Tried    asking for the first lines of each row's next page, which helps along rows: 35 GB/s
//          instead of 41 (4096 x 4096 f32, one thread of a 2-core Zen 5 vCPU); each line 512 bytes
//          to 2 KiB ahead 36, four rows at a time 36, two 30, one by one with pages ahead 37.
// Source   gemv of a transposed matrix.
#include "rung/ops/reduce/cpu/detail/engine.hpp"

namespace rung {
namespace {
using namespace reduce_cpu;

Support supports(const Reduce::Args& args, const Context&) {
  return walk_of(args) == Walk::columns
             ? supported
             : unsupported("contiguous results, with reduced axes of larger strides");
}

double estimate(const Reduce::Args& args, const Context&) {
  return 2e-7 + Reduce::cost(args).bytes / 35e9;
}

void run(const Reduce::Args& args, Context& context) { reduce_columns(args, context, 1); }

const Rung<Reduce> self{{.name = "columns",
                         .step = 50,
                         .after = "simd",
                         .supports = supports,
                         .estimate = estimate,
                         .run = run}};
}  // namespace
}  // namespace rung
