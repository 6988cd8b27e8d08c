// SPDX-License-Identifier: Apache-2.0
// loss / online
//
// Idea     Compute maximum and sum in one pass: a larger maximum rescales the running sum. The loss
//          is log(sum) plus the distance of the label's element from the maximum, which avoids the
//          difference of two large numbers.
// Changes  Against naive: two passes instead of three, sums in double; all kinds of loss, types and
//          layouts, ignored labels and smoothing.
// Cost     x is read twice, the second time from the cache; two exponentials per element.
// Limits   All valid arguments; one thread, scalar code.
// Source   M. Milakov and N. Gimelshein, Online normalizer calculation for softmax, 2018.
#include "rung/ops/loss/cpu/detail/rows.hpp"

namespace rung {
namespace loss_cpu {
namespace {

/// Elements summed before they are added to the row's sum. A row of C elements has dependency
/// chains of sum_block + C / sum_block additions, and one rescaling per block: fewer than the C / 8
/// + 48 roundings of the contract.
constexpr std::int64_t sum_block = 32;

template <class T>
double online(const Loss::Args& args, double factor, cpu::Range rows) {
  using Sum = Accumulator<T>;
  const auto terms = LossTerms<Sum>::of(args);
  const auto labels = LossLabels::of(args);
  const std::int64_t classes = args.classes();
  const auto scale = static_cast<Sum>(factor);
  double all = 0;
  for (std::int64_t number = rows.begin; number < rows.end; ++number) {
    const Row<T> row(args, labels, number);
    if (!row.counts || row.is_wrong) {
      all += row.write_without_label(classes);
      continue;
    }
    // Running maximum, and the sum of exponentials relative to it. The maximum starts finite,
    // because -infinity - -infinity is NaN.
    Sum maximum = std::numeric_limits<Sum>::lowest();
    double sum = 0;
    for (std::int64_t first = 0; terms.has_maximum() && first < classes; first += sum_block) {
      const std::int64_t last = std::min(first + sum_block, classes);
      const Sum before = maximum;
      for (std::int64_t c = first; c < last; ++c) {
        if (row.value(c) > maximum) maximum = row.value(c);
      }
      if (maximum > before) sum *= static_cast<double>(std::exp(before - maximum));
      double part = 0;
      for (std::int64_t c = first; c < last; ++c) {
        part += static_cast<double>(std::exp(row.value(c) - maximum));
      }
      sum += part;
    }
    double linear = 0;
    for (std::int64_t first = 0; first < classes; first += sum_block) {
      double part = 0;
      for (std::int64_t c = first; c < std::min(first + sum_block, classes); ++c) {
        part += static_cast<double>(terms.term(row.value(c), row.target(c), maximum));
      }
      linear += part;
    }
    const double loss = terms.has_maximum() ? linear + std::log(sum) : linear;
    if (row.loss != nullptr) *row.loss = static_cast<Sum>(loss);
    all += loss;
    if (row.dx == nullptr) continue;
    const auto inverse = static_cast<Sum>(1 / sum);
    for (std::int64_t c = 0; c < classes; ++c) {
      const Sum x = row.value(c);
      const Sum p = terms.has_maximum() ? std::exp(x - maximum) * inverse : Sum(0);
      row.dx[c * row.step_dx] = static_cast<T>(terms.slope(x, row.target(c), p) * scale);
    }
  }
  return all;
}

}  // namespace

double online_rows(const Loss::Args& args, double factor, cpu::Range rows) {
  return visit<float, double, f16, bf16>(args.x.dtype,
                                         [&]<class T>() { return online<T>(args, factor, rows); });
}

}  // namespace loss_cpu

namespace {

Work work(const Loss::Args& args, const Context&) { return loss_cpu::facts(args, false, 1); }

void run(const Loss::Args& args, Context&) {
  const cpu::Range rows{0, args.count()};
  const std::int64_t counted = loss_cpu::count_rows(args, rows);
  const double sum = loss_cpu::online_rows(args, loss_cpu::factor_of(args, counted), rows);
  loss_cpu::write_result(args, sum, counted);
}

const Rung<Loss> self{{.name = "online", .step = 20, .after = "naive", .work = work, .run = run}};

}  // namespace
}  // namespace rung
