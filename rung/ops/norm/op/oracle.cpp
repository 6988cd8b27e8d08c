// SPDX-License-Identifier: Apache-2.0
// norm: cost, reference results and tolerances.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "rung/core/dtype.hpp"
#include "rung/harness/inputs.hpp"
#include "rung/ops/norm/op/norm.hpp"
#include "rung/ops/norm/shared/axes.hpp"
#include "rung/ops/norm/shared/oracle.hpp"

namespace rung {
namespace {

using namespace norm_oracle;

/// Returns x + residual, rounded to their type.
double sum_at(const Norm::Args& args, const Index& index) {
  const double x = element(args.x, index);
  if (args.residual.data == nullptr) return x;
  unsigned char bits[8] = {};
  store_from_double(args.x.dtype, bits, x + element(args.residual, index));
  return load_as_double(args.x.dtype, bits);
}

class Rows {
 public:
  explicit Rows(const Norm::Args& args)
      : args_(args), rows_(static_cast<std::size_t>(args.rows())) {}

  const RowStatistics& at(std::int64_t row) {
    auto& known = rows_[static_cast<std::size_t>(row)];
    if (!known) known = compute(row);
    return *known;
  }

 private:
  [[nodiscard]] RowStatistics compute(std::int64_t row) const {
    Index index;
    place(index, row, args_.x.shape, ~args_.normalized);
    std::vector<double> values(static_cast<std::size_t>(args_.columns()));
    for (std::size_t column = 0; column < values.size(); ++column) {
      place(index, static_cast<std::int64_t>(column), args_.x.shape, args_.normalized);
      values[column] = sum_at(args_, index);
    }
    return row_statistics(values, args_.kind, args_.epsilon, arithmetic_of(args_.x.dtype));
  }

  const Norm::Args& args_;
  std::vector<std::optional<RowStatistics>> rows_;
};

void expect_y(const Norm::Args& args, Rows& rows, const Index& index, double& value,
              double& bound) {
  const RowStatistics& row = rows.at(linear_of(index, args.x.shape, ~args.normalized));
  const double gamma = args.gamma.data == nullptr ? 1 : element(args.gamma, index);
  const double beta = args.beta.data == nullptr ? 0 : element(args.beta, index);
  const Real z = row.z(sum_at(args, index));
  const Real y = z * gamma + beta;
  value = static_cast<double>(y);
  // beta is added to a rounded product; the bound includes that rounding.
  bound = static_cast<double>(std::abs(gamma) * row.z_error(z) +
                              2 * unit(arithmetic_of(args.x.dtype)) * std::abs(y) +
                              unit(args.y.dtype) * 1.01L * std::abs(y));
}

void expect_statistics(const Norm::Args& args, const RowStatistics& row, bool mean, double& value,
                       double& bound) {
  value = static_cast<double>(mean ? row.mean : row.rstd);
  bound = static_cast<double>(mean ? row.mean_error(unit(arithmetic_of(args.x.dtype)))
                                   : row.rstd_error());
}

}  // namespace

Cost Norm::cost(const Args& args) {
  const auto rows = static_cast<double>(args.rows());
  const auto columns = static_cast<double>(args.columns());
  const auto given = [](const auto& tensor) { return tensor.data != nullptr ? 1.0 : 0.0; };
  const auto size = static_cast<double>(size_of(args.x.dtype));
  const double written = rows * columns * size * (1 + given(args.sum)) +
                         rows * (given(args.mean) + given(args.rstd)) *
                             static_cast<double>(size_of(arithmetic_of(args.x.dtype)));
  double bytes = rows * columns * size * (1 + given(args.residual)) + written;
  bytes += columns * (given(args.gamma) * static_cast<double>(size_of(args.gamma.dtype)) +
                      given(args.beta) * static_cast<double>(size_of(args.beta.dtype)));
  // layer: sum, difference, square and sum, scale, gamma and beta.
  const double operations = args.kind == NormKind::layer ? 8 : 5;
  return {.bytes = bytes, .operations = rows * columns * operations, .written = written};
}

void Norm::reference(const Args& args, Oracle& oracle) {
  Rows rows(args);
  std::size_t next = 0;
  const auto fill = [&](const Extents& shape, const auto& expect) {
    Oracle::Output& output = oracle.outputs.at(next++);
    std::size_t at = 0;
    for (const std::int64_t row : output.rows) {
      for (std::int64_t i = 0; i < output.length; ++i, ++at) {
        Index index;
        place(index, row * output.length + i, shape, all_axes);
        expect(index, output.value[at], output.magnitude[at]);
      }
    }
  };
  const auto fill_y = [&] {
    fill(args.x.shape, [&](const Index& index, double& value, double& bound) {
      expect_y(args, rows, index, value, bound);
    });
  };
  const auto fill_sum = [&] {  // exact: sum_at() rounds once
    fill(args.x.shape, [&](const Index& index, double& value, double& bound) {
      value = sum_at(args, index);
      bound = 0;
    });
  };
  const auto fill_statistics = [&](bool mean) {
    const Extents shape = norm_axes::part(args.x.shape, ~args.normalized);
    fill(shape, [&](const Index& index, double& value, double& bound) {
      expect_statistics(args, rows.at(linear_of(index, shape, all_axes)), mean, value, bound);
    });
  };
  // Outputs in the order in which make() creates them.
  const bool y_in_place = args.y.data == args.x.data;
  const bool sum_in_place = args.sum.data != nullptr && args.sum.data == args.residual.data;
  if (y_in_place) fill_y();
  if (sum_in_place) fill_sum();
  if (!y_in_place) fill_y();
  if (args.sum.data != nullptr && !sum_in_place) fill_sum();
  if (args.mean.data != nullptr) fill_statistics(true);
  if (args.rstd.data != nullptr) fill_statistics(false);
}

Tolerance Norm::tolerance(const Args& args, const RungInfo& rung, Values) {
  Tolerance tolerance;
  tolerance.magnitude = 1;
  const auto largest_of_rows = [&](const auto& number) {
    Rows rows(args);
    Real largest = 0;
    for (std::int64_t row = 0; row < args.rows(); ++row) {
      largest = std::max(largest, number(rows.at(row)));
    }
    return static_cast<double>(largest);
  };
  if (rung.name == "welford" || rung.peer) {
    // These do not correct the mean: they keep only the wider bounds that hold for all rungs.
    const auto factor = [](const RowStatistics& row) { return row.uncorrected(); };
    tolerance.magnitude = std::max(1.0, largest_of_rows(factor));
  }
  if (rung.name == "welford" && rung.backend == Backend::cpu) {
    // One dependency chain over the whole row; other rungs have 8 or more.
    const auto n = static_cast<double>(args.columns());
    tolerance.magnitude *= (n + 32) / (n / 8 + 32);
  }
  if (rung.name == "sum_of_squares") {
    // mean(s^2) - mean(s)^2 loses one digit for the usual values of the checks, and all digits if
    // the mean is large relative to the spread: see the rung's header.
    tolerance.relative = 0.02, tolerance.absolute = 1e-3;
    const double size = largest_of_rows([](const RowStatistics& row) { return row.size; });
    const double loss =
        (static_cast<double>(args.columns()) + 32) * unit(args.x.dtype) * size * size;
    constexpr double all_digits = 0.25;
    if (args.kind == NormKind::layer && loss > all_digits) {
      tolerance.absolute = std::numeric_limits<double>::infinity();
    }
  }
  tolerance.absolute += 2 * smallest(args.y.dtype);
  return tolerance;
}

}  // namespace rung
