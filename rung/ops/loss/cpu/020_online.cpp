// SPDX-License-Identifier: Apache-2.0
// loss / online
//
// Idea     maximum and sum in one pass: what was added up below an old maximum is scaled down to
//          a new one. Losses are the logarithm of the sum plus what the maximum is above the label,
//          never a difference of two large numbers.
// Changes  against naive: two passes in place of three, sums in double; every kind of loss, type
//          and layout, ignored labels and smoothing.
// Cost     x twice, the second time from the cache; two exponentials per element.
// Limits   every valid call; one thread, no vectors.
// Tried    -
// Source   M. Milakov and N. Gimelshein, Online normalizer calculation for softmax, 2018.
#include "rung/ops/loss/cpu/detail/rows.hpp"

namespace rung {
namespace {

double estimate(const Loss::Args& args, const Context&) { return loss_cpu::scalar_seconds(args); }

void run(const Loss::Args& args, Context&) {
  const std::int64_t rows = args.count();
  const std::int64_t counted = loss_cpu::count_rows(args, 0, rows);
  const double factor = loss_cpu::factor_of(args, counted);
  const double sum = loss_cpu::scalar_rows_of(args.x.dtype)(args, factor, 0, rows);
  loss_cpu::write_result(args, sum, counted);
}

const Rung<Loss> self{
    {.name = "online", .step = 20, .after = "naive", .estimate = estimate, .run = run}};

}  // namespace
}  // namespace rung
