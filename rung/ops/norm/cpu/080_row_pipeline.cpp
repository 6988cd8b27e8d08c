// SPDX-License-Identifier: Apache-2.0
// norm / row pipeline
//
// Idea     software pipeline over rows: one loop writes row r, sums the squares of row r + 1 and
//          the elements of row r + 2, vector by vector. Memory is read and written all the time,
//          and no row waits for its sums' last additions.
// Changes  against non_temporal: the three passes belong to three rows and share a loop
//          (detail/stream-inl.hpp); non-temporal stores only where y does not stay in a cache;
//          eight sums instead of four. And every call: long rows in blocks of 4096 elements, which
//          stay in L1 from the first to the third pass and whose moments are combined in double;
//          vectors across rows where those are adjacent; rows that are neither are gathered first;
//          the residual, mean and rstd; f64, f16 and bf16.
// Cost     x read once, y written once; 3 loads, 7 operations and a store per vector.
// Limits   one thread.
// Tried    EXPERIMENTS.md: prefetch distances, block sizes, short rows, what else to fuse.
// Source   T. Chan, G. Golub & R. LeVeque, Algorithms for computing the sample variance, 1983; M.
//          Lam, Software pipelining, 1988.
#include "rung/ops/norm/cpu/detail/kernels.hpp"

namespace rung {
namespace {

double estimate(const Norm::Args& args, const Context&) { return norm_cpu::seconds(args, 1); }

void run(const Norm::Args& args, Context& context) { norm_cpu::normalise(args, context, 1); }

const Rung<Norm> self{{.name = "row_pipeline",
                       .step = 80,
                       .after = "non_temporal",
                       .estimate = estimate,
                       .run = run}};

}  // namespace
}  // namespace rung
