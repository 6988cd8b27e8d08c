// SPDX-License-Identifier: Apache-2.0
// What loss's CPU rungs share: which rows count, one row after another without vectors, shares of
// threads and their order of addition.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "rung/core/integer.hpp"
#include "rung/ops/loss/op/loss.hpp"
#include "rung/ops/loss/op/terms.hpp"

namespace rung::loss_cpu {

/// Rows of [begin, end) whose label is not the ignored one.
std::int64_t count_rows(const Loss::Args& args, std::int64_t begin, std::int64_t end);

/// What the gradient of a row is multiplied with.
inline double factor_of(const Loss::Args& args, std::int64_t counted) {
  const bool mean = args.options.reduction == LossReduction::mean;
  return mean && counted > 0 ? 1.0 / static_cast<double>(counted) : 1.0;
}

/// Writes the result: `sum` of all rows' losses.
void write_result(const Loss::Args& args, double sum, std::int64_t counted);

/// One row, wherever its elements lie.
template <class T>
struct Row {
  using Sum = Accumulator<T>;
  const T* x;
  T* dx;             // or null
  const T* targets;  // or null: then a label
  std::int64_t label = -1;
  bool counts = true;
  bool is_wrong = false;
  Sum* loss;  // or null
  std::int64_t step_x, step_dx, step_target;

  Row(const Loss::Args& args, const LossLabels& labels, std::int64_t row)
      : x(nullptr), dx(nullptr), targets(nullptr), loss(nullptr) {
    std::int64_t at[4];
    args.rows.offsets(row, at);
    x = static_cast<const T*>(args.x.data) + at[Loss::row_x];
    if (args.options.dx.data != nullptr) {
      dx = static_cast<T*>(args.options.dx.data) + at[Loss::row_dx];
    }
    if (labels.data == nullptr) {
      targets = static_cast<const T*>(args.target.data) + at[Loss::row_target];
    } else {
      label = labels.at(at[Loss::row_target]);
      counts = labels.counts(label);
      is_wrong = counts && labels.is_wrong(label);
    }
    if (args.options.losses.data != nullptr) {
      loss = static_cast<Sum*>(args.options.losses.data) + at[Loss::row_losses];
    }
    step_x = args.rows.steps[Loss::row_x];
    step_dx = args.rows.steps[Loss::row_dx];
    step_target = args.rows.steps[Loss::row_target];
  }

  [[nodiscard]] Sum value(std::int64_t c) const { return static_cast<Sum>(x[c * step_x]); }
  [[nodiscard]] Sum target(std::int64_t c) const {
    return targets != nullptr ? static_cast<Sum>(targets[c * step_target]) : Sum(c == label);
  }
  /// A row without a label that is a class: 0 if it is ignored, else NaN. Returns its loss.
  double write_without_label(std::int64_t classes) const {
    const Sum all = counts ? std::numeric_limits<Sum>::quiet_NaN() : Sum(0);
    if (loss != nullptr) *loss = all;
    if (dx != nullptr) {
      for (std::int64_t c = 0; c < classes; ++c) dx[c * step_dx] = static_cast<T>(all);
    }
    return static_cast<double>(all);
  }
};

/// Number of elements that are added up before their sum joins the row's. A row of C elements has
/// sum_block + C / sum_block additions one after another, and as many scalings as blocks: fewer
/// than the C / 8 + 48 roundings that the contract allows.
constexpr std::int64_t sum_block = 32;

/// Returns the sum of the losses of rows [begin, end), one element after another.
template <class T>
double scalar_rows(const Loss::Args& args, double factor, std::int64_t begin, std::int64_t end) {
  using Sum = Accumulator<T>;
  const auto terms = LossTerms<Sum>::of(args);
  const auto labels = LossLabels::of(args);
  const std::int64_t classes = args.classes();
  const auto scale = static_cast<Sum>(factor);
  double all = 0;
  for (std::int64_t number = begin; number < end; ++number) {
    const Row<T> row(args, labels, number);
    if (!row.counts || row.is_wrong) {
      all += row.write_without_label(classes);
      continue;
    }
    // The maximum so far, and the sum of exponentials below it, which a new maximum scales down.
    // Infinities less each other would be NaN: it starts from a number.
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

/// Rows are added up in chunks, and these one after the other: their extent depends on the call
/// alone, so that any number of threads gives the same bits.
struct Chunks {
  std::int64_t rows = 0;
  std::int64_t each = 1;

  explicit Chunks(const Loss::Args& args) : rows(args.count()) {
    constexpr std::int64_t elements = 1 << 13;
    each = ceil_div(elements, args.classes());
  }
  [[nodiscard]] std::int64_t count() const { return ceil_div(rows, each); }
};

using RowsKernel = double (*)(const Loss::Args& args, double factor, std::int64_t begin,
                              std::int64_t end);
RowsKernel scalar_rows_of(DType dtype);

/// Vector kernels for contiguous rows of x and target: as scalar_rows. `spare` holds a row of dx
/// before its elements are scattered; null where rows of dx are contiguous. In 030_simd.cpp.
using VectorKernel = double (*)(const Loss::Args& args, double factor, std::int64_t begin,
                                std::int64_t end, void* spare);
VectorKernel vector_rows(DType dtype);

/// Runs the call on up to `threads` threads, with vectors where rows of x and target are
/// contiguous. The strides of dx do not matter: they change no bit of any result.
void chunked(const Loss::Args& args, Context& context, int threads);

/// Estimated seconds of chunked(). Independent of the number of threads and of the strides of dx,
/// as the choice must be: other rungs add in another order.
double chunked_seconds(const Loss::Args& args);
double scalar_seconds(const Loss::Args& args);

}  // namespace rung::loss_cpu
