// SPDX-License-Identifier: Apache-2.0
// softmax / row pipeline
//
// Idea     software pipeline over rows: one loop writes row r, makes the exponentials of row r + 1
//          and finds the maximum of row r + 2, vector by vector. Memory is read and written all the
//          time, while the FMA units work, and no row waits for its sum's last exponential.
// Changes  against non_temporal: the three passes belong to three rows and share a loop
//          (detail/pipeline-inl.hpp: pipeline_rows). Non-temporal stores only where x and y
//          together exceed L3; a row is then written from its end, as what is read has just passed
//          those addresses modulo 4 KiB (4K aliasing). And every call:
//          - columns, along another axis: a vector holds as many rows, each online, as a column
//            would not stay in L1 (detail/columns-inl.hpp);
//          - rows longer than 65536 elements: in pieces of 8192, whose maxima and sums are
//            combined;
//          - rows that are neither contiguous nor adjacent: gathered into a buffer first;
//          - backward: the gradient of one row and the sum of the next share a loop;
//          - f64, f16 and bf16, the logarithm.
// Cost     x read once, y written once: the 8 bytes per f32 element that must move, and some 15
//          operations per vector. Columns that exceed L2, and long rows: x is read twice.
// Limits   one thread.
// Tried    EXPERIMENTS.md: other polynomials, prefetch distances, block sizes, what else to fuse.
// Source   M. Lam, Software pipelining, 1988; M. Milakov and N. Gimelshein, Online normalizer
//          calculation for softmax, 2018.
#include "rung/ops/softmax/cpu/detail/estimate.hpp"
#include "rung/ops/softmax/cpu/detail/kernels.hpp"

namespace rung {
namespace {

double estimate(const Softmax::Args& args, const Context&) { return softmax_cpu::seconds(args, 1); }

void run(const Softmax::Args& args, Context& context) { softmax_cpu::run(args, context, 1); }

const Rung<Softmax> self{{.name = "row_pipeline",
                          .step = 80,
                          .after = "non_temporal",
                          .estimate = estimate,
                          .run = run}};

}  // namespace
}  // namespace rung
