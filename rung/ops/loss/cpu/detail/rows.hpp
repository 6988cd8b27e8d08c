// SPDX-License-Identifier: Apache-2.0
// Rows of loss for the CPU rungs, the chunks in which losses are summed, and shared kernels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "rung/core/integer.hpp"
#include "rung/cpu/piece_work.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/loss/op/loss.hpp"
#include "rung/ops/loss/op/terms.hpp"

namespace rung::loss_cpu {

/// One row with any strides.
template <class T>
struct Row {
  using Sum = Accumulator<T>;
  const T* x;
  T* dx = nullptr;             // null: not requested
  const T* targets = nullptr;  // null: the row has a label
  std::int64_t label = -1;
  bool counts = true;
  bool is_wrong = false;
  Sum* loss = nullptr;  // null: not requested
  std::int64_t step_x, step_dx, step_target;

  Row(const Loss::Args& args, const LossLabels& labels, std::int64_t row) {
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
  /// Writes loss and dx of a row without a valid label: 0 if it is ignored, else NaN. Returns the
  /// loss.
  double write_without_label(std::int64_t classes) const {
    const Sum all = counts ? std::numeric_limits<Sum>::quiet_NaN() : Sum(0);
    if (loss != nullptr) *loss = all;
    if (dx != nullptr) {
      for (std::int64_t c = 0; c < classes; ++c) dx[c * step_dx] = static_cast<T>(all);
    }
    return static_cast<double>(all);
  }
};

/// Chunks of rows, whose losses are summed separately and combined in order. Their size depends on
/// the shape alone, so that results are bitwise equal for any number of threads.
struct Chunks {
  std::int64_t rows;
  std::int64_t each;

  explicit Chunks(const Loss::Args& args)
      : rows(args.count()), each(ceil_div(std::int64_t{1} << 13, args.classes())) {}
  [[nodiscard]] std::int64_t count() const { return ceil_div(rows, each); }
  [[nodiscard]] cpu::Range operator[](std::int64_t chunk) const {
    return {chunk * each, std::min(rows, (chunk + 1) * each)};
  }
};

/// Returns the number of rows whose label is not the ignored one.
inline std::int64_t count_rows(const Loss::Args& args, cpu::Range rows) {
  const auto labels = LossLabels::of(args);
  if (!labels.ignores) return rows.size();
  std::int64_t counted = 0;
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    counted += labels.counts(labels.at(args.rows.template offset<Loss::row_target>(row))) ? 1 : 0;
  }
  return counted;
}

/// Returns the factor of the gradients if `counted` rows are not ignored.
inline double factor_of(const Loss::Args& args, std::int64_t counted) {
  const bool mean = args.options.reduction == LossReduction::mean;
  return mean && counted > 0 ? 1.0 / static_cast<double>(counted) : 1.0;
}

/// Writes the result: `sum` of all rows' losses, or their mean.
inline void write_result(const Loss::Args& args, double sum, std::int64_t counted) {
  if (args.options.reduction == LossReduction::mean && counted > 0) {
    sum /= static_cast<double>(counted);
  }
  if (args.result.dtype == DType::f64) {
    *static_cast<double*>(args.result.data) = sum;
  } else {
    *static_cast<float*>(args.result.data) = static_cast<float>(sum);
  }
}

/// Kernels that write losses and gradients of a range of rows and return the sum of the losses.
/// online_rows() supports all arguments; simd_rows() needs contiguous rows of x and target, and
/// computes strided rows of dx in `spare`.
double online_rows(const Loss::Args& args, double factor, cpu::Range rows);
double simd_rows(const Loss::Args& args, double factor, cpu::Range rows, void* spare);
/// Returns the bytes of `spare`: 0 if rows of dx are contiguous.
inline std::size_t spare_bytes(const Loss::Args& args) {
  const bool scatters = args.options.dx.data != nullptr && !args.writes_contiguous();
  return scatters ? round_up(static_cast<std::size_t>(args.classes()) * size_of(args.x.dtype), 64U)
                  : 0;
}

/// Problems of fewer elements use one thread: waking a second one costs about 5 us.
inline constexpr std::int64_t min_elements = 1 << 14;

/// Returns the work of a rung for the time model; `has_vectors`: it processes rows in vectors of 16
/// elements.
inline Work facts(const Loss::Args& args, bool has_vectors, int threads) {
  const bool powers = args.options.kind == LossKind::cross_entropy;
  const bool small = size_of(args.x.dtype) == 2;
  return cpu::piece_work(args.count(),
                         args.count() * ceil_div(args.classes(), has_vectors ? 16 : 1), threads,
                         !has_vectors ? powers ? "scalar powers" : "scalar"
                         : powers     ? small ? "powers 16-bit" : "powers"
                         : small      ? "16-bit"
                                      : "");
}

}  // namespace rung::loss_cpu
